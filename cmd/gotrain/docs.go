package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

// docsCmd prints documentation generated from the code; go generate calls it.
func (a *app) docsCmd() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "docs recipes|exit-codes|man", Hidden: true, Short: "Print documentation generated from the code", Args: cobra.ExactArgs(1),
		ValidArgs: []string{"recipes", "exit-codes", "man"},
		RunE: func(c *cobra.Command, args []string) error {
			text := ""
			switch args[0] {
			case "recipes":
				text = recipes.Reference()
			case "exit-codes":
				text = launch.CodeTable()
			case "man":
				if out == "" {
					return launch.WithCode(launch.ExitUsage, errors.New("there are several manual pages\nhint: name a folder with --out"))
				}
				n, err := writeMan(c.Root(), out)
				if err == nil {
					fmt.Fprintf(a.out, "%d pages in %s\n", n, out)
				}
				return err
			default:
				return launch.WithCode(launch.ExitUsage, fmt.Errorf("no documentation %q\nhint: use recipes, exit-codes or man", args[0]))
			}
			if out == "" {
				_, err := fmt.Fprint(a.out, text)
				return err
			}
			return os.WriteFile(out, []byte(text), 0o644)
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to this `file`; for man, to this folder")
	return c
}
