package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

func (a *app) validateCmd() *cobra.Command {
	var f recipeFlags
	var resolved, asJSON, noData, files bool
	c := &cobra.Command{
		Use:   "validate RECIPE",
		Short: "Check a recipe and its data, without running it",
		Long: `Check a recipe and its data, without running it. Every problem is listed with file, line and key, not only the first one; settings
that look like a mistake are warnings. The exit code is 78 for an invalid recipe, and 66 for data that is missing or cannot be read.

RECIPE is a file, the name of a recipe in the binary, or - for a recipe on standard input.

With --files every training and held-out sample is loaded once, and all that fail are listed.`,
		Example: `  gotrain validate my.toml
  gotrain validate my.toml --resolved          # with every key filled in
  gotrain validate my.toml --files             # before a long run: opens every file
  gotrain validate my.toml --json --no-data    # for editors and CI
  gotrain validate - --no-data < my.toml       # before it is saved`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := f.loadOr(args[0], c.InOrStdin())
			if asJSON {
				return a.validateJSON(c.Context(), r, err, noData, files)
			}
			if err != nil {
				return err
			}
			a.warn(r.Warnings())
			if resolved {
				fmt.Fprint(a.out, r)
				return nil
			}
			sum := "data not checked"
			if !noData {
				if sum, err = describeData(c.Context(), r, files); err != nil {
					return err
				}
			}
			fmt.Fprintf(a.out, "%s is valid: %s\n", r.Source(), sum)
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&resolved, "resolved", false, "print the recipe with every key filled in")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.Flags().BoolVar(&noData, "no-data", false, "do not check the data")
	c.Flags().BoolVar(&files, "files", false, "load every sample once, and list all that fail")
	c.MarkFlagsMutuallyExclusive("resolved", "json")
	c.MarkFlagsMutuallyExclusive("files", "no-data")
	c.MarkFlagsMutuallyExclusive("files", "resolved")
	return c
}

// problem is a problem as JSON.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// validateJSON prints the result for programs; the error that it returns carries the exit code only.
func (a *app) validateJSON(ctx context.Context, r *recipes.Recipe, err error, noData, files bool) error {
	out := struct {
		Valid    bool      `json:"valid"`
		Problems []problem `json:"problems"`
		Warnings []string  `json:"warnings"`
		Data     string    `json:"data,omitempty"`
	}{Problems: []problem{}, Warnings: []string{}}
	if err == nil {
		out.Warnings = append(out.Warnings, r.Warnings()...)
		if !noData {
			out.Data, err = describeData(ctx, r, files)
		}
	}
	var all recipes.Errors
	var bad *badSamples
	switch {
	case errors.As(err, &bad):
		for _, b := range bad.bad {
			out.Problems = append(out.Problems, problem{Message: b.Err.Error()})
		}
	case errors.As(err, &all):
		for _, p := range all {
			out.Problems = append(out.Problems, problem{p.File, p.Line, p.Key, p.Msg, p.Hint})
		}
	case err != nil:
		out.Problems = append(out.Problems, problem{Message: err.Error()})
	}
	out.Valid = err == nil
	if perr := a.printJSON(out); perr != nil {
		return perr
	}
	if err != nil {
		return launch.WithCode(exitCode(err), errors.New(""))
	}
	return nil
}
