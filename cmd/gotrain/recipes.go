package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

func (a *app) recipesCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "recipes",
		Short: "List, show or copy the recipes in the binary",
		Example: `  gotrain recipes list
  gotrain recipes show resnet50
  gotrain recipes copy resnet50 my.toml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.listRecipes() },
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the recipes in the binary", Args: cobra.NoArgs,
		Example: "  gotrain recipes list\n  gotrain recipes list --json | jq -r '.[].name'",
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(listed())
			}
			return a.listRecipes()
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.AddCommand(list)
	c.AddCommand(&cobra.Command{
		Use: "show NAME", Short: "Print the text of a recipe, comments included", Args: cobra.ExactArgs(1),
		Example:           "  gotrain recipes show quickstart",
		ValidArgsFunction: completeRecipes,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := recipeText(args[0])
			if err == nil {
				fmt.Fprint(a.out, text)
			}
			return err
		},
	})
	c.AddCommand(&cobra.Command{
		Use: "copy NAME [FILE]", Short: "Copy a recipe to a file for editing", Args: cobra.RangeArgs(1, 2),
		Long:              "Copy a recipe to a file for editing: to NAME.toml in the working directory unless FILE is given. An existing file is not overwritten.",
		Example:           "  gotrain recipes copy resnet50 my.toml",
		ValidArgsFunction: completeRecipes,
		RunE: func(_ *cobra.Command, args []string) error {
			file := filepath.Base(args[0]) + ".toml"
			if len(args) == 2 {
				file = args[1]
			}
			return a.copyRecipe(args[0], file)
		},
	})
	return c
}

// listedRecipe is a recipe in the binary, as JSON.
type listedRecipe struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

func listed() []listedRecipe {
	var out []listedRecipe
	for _, n := range recipes.List() {
		out = append(out, listedRecipe{n, recipes.Summary(n)})
	}
	return out
}

func (a *app) listRecipes() error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, r := range listed() {
		fmt.Fprintf(w, "%s\t%s\n", r.Name, r.Summary)
	}
	return w.Flush()
}

// recipeText returns the text of a recipe in the binary.
func recipeText(name string) (string, error) {
	if text := recipes.Text(name); text != "" {
		return text, nil
	}
	_, err := recipes.Open(name) // its error has the message
	if err == nil {
		err = fmt.Errorf("no recipe %q in the binary", name)
	}
	return "", launch.WithCode(launch.ExitNoInput, err)
}

func (a *app) copyRecipe(name, file string) error {
	text, err := recipeText(name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return launch.WithCode(launch.ExitStorage, fmt.Errorf("%s already exists\nhint: give another file name", file))
	}
	if err != nil {
		return launch.WithCode(launch.ExitStorage, err)
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return launch.WithCode(launch.ExitStorage, err)
	}
	fmt.Fprintf(a.out, "%s: edit it, then gotrain run %s\n", file, file)
	return nil
}
