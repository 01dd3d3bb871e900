package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/amount"
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
	if err := c.RegisterFlagCompletionFunc("set", completeSet); err != nil {
		panic(err) // a programmer's mistake
	}
}

// all returns the overrides, including those that have a separate flag.
func (f *recipeFlags) all() []string {
	if f.ranks == 0 {
		return f.sets
	}
	return append(f.sets[:len(f.sets):len(f.sets)], "train.ranks="+strconv.Itoa(f.ranks))
}

// load reads the recipe with the overrides.
func (f *recipeFlags) load(path string) (*recipes.Recipe, error) {
	return counted(recipes.Load(path, f.all()...))
}

// maxStdin is larger than any recipe.
const maxStdin = 4 << 20

// loadOr is load, except that - reads the recipe from standard input.
func (f *recipeFlags) loadOr(path string, stdin io.Reader) (*recipes.Recipe, error) {
	if path != "-" {
		return f.load(path)
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxStdin+1))
	if err == nil && len(text) > maxStdin {
		err = fmt.Errorf("more than %s: this is not a recipe", amount.Bytes(maxStdin))
	}
	if err != nil {
		return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("standard input: %w", err))
	}
	return counted(recipes.Decode(string(text), "stdin", f.all()...))
}

// warn prints settings that look like a mistake.
func (a *app) warn(warnings []string) {
	if a.level == levelQuiet {
		return
	}
	for _, w := range warnings {
		fmt.Fprintln(a.err, "warning:", w)
	}
}

// note prints what the user should know although nothing is wrong.
func (a *app) note(lines []string) {
	if a.level == levelQuiet {
		return
	}
	for _, l := range lines {
		fmt.Fprintln(a.err, "note:", l)
	}
}

// printLine is printJSON on one line, for lists of objects that are read line by line.
func (a *app) printLine(v any) error { return json.NewEncoder(a.out).Encode(v) }

// printJSON prints a value for programs.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
