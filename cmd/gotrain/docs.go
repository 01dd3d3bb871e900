package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

// docsCmd prints documentation that is made from code; go generate calls it.
func (a *app) docsCmd() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "docs recipes|exit-codes", Hidden: true, Short: "Print documentation that is made from the code", Args: cobra.ExactArgs(1),
		ValidArgs: []string{"recipes", "exit-codes"},
		RunE: func(_ *cobra.Command, args []string) error {
			text := ""
			switch args[0] {
			case "recipes":
				text = recipes.Reference()
			case "exit-codes":
				text = launch.CodeTable()
			default:
				return launch.WithCode(launch.ExitUsage, fmt.Errorf("no documentation %q\nhint: recipes or exit-codes", args[0]))
			}
			if out == "" {
				_, err := fmt.Fprint(a.out, text)
				return err
			}
			return os.WriteFile(out, []byte(text), 0o644)
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to this `file`")
	return c
}
