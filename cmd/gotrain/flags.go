package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/recipes"
)

// recipeFlags are the flags of all verbs that take a recipe.
type recipeFlags struct {
	sets  []string
	ranks int
}

func (f *recipeFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.sets, "set", nil, "change a key of the recipe: `section.key=value`; may be repeated")
	c.Flags().IntVarP(&f.ranks, "ranks", "n", 0, "short for --set train.ranks=`N`")
	c.ValidArgsFunction = completeRecipes
}

// load reads the recipe with the overrides.
func (f *recipeFlags) load(path string) (*recipes.Recipe, error) {
	sets := f.sets
	if f.ranks != 0 {
		sets = append(sets[:len(sets):len(sets)], "train.ranks="+strconv.Itoa(f.ranks))
	}
	return recipes.Load(path, sets...)
}

// completeRecipes offers the recipes of the binary beside files.
func completeRecipes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, n := range recipes.List() {
		out = append(out, n+"\t"+recipes.Summary(n))
	}
	return out, cobra.ShellCompDirectiveDefault
}

// warn prints what looks like a mistake.
func (a *app) warn(r *recipes.Recipe) {
	for _, w := range r.Warnings() {
		fmt.Fprintln(a.err, "warning:", w)
	}
}

// printJSON prints a value for programs.
// printLine is printJSON on one line, for lists of objects that are read line by line.
func (a *app) printLine(v any) error { return json.NewEncoder(a.out).Encode(v) }

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
