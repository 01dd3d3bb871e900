package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
)

func (a *app) evalCmd() *cobra.Command {
	var f recipeFlags
	var recipe string
	var asJSON bool
	c := &cobra.Command{
		Use:   "eval CHECKPOINT",
		Short: "Evaluate a checkpoint on held-out samples",
		Long: `Evaluate a checkpoint on held-out samples. CHECKPOINT is the folder of one, or a folder of several or of a run, where the newest good one is
used. The recipe is the one that the checkpoint was trained with, unless --recipe names another; --set changes keys, for example to
evaluate on other data. Class folders are matched by name with the classes that the checkpoint was trained on; training samples are not
needed. Every sample counts exactly once, whatever the number of ranks.`,
		Example: `  gotrain eval runs/resnet50/checkpoints
  gotrain eval runs/resnet50/checkpoints/step-00000090 --set data.root=/data/other
  gotrain eval runs/resnet50/checkpoints --ranks 1 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := thisProcess()
			if err != nil {
				return err
			}
			from, text, err := openCheckpoint(c.Context(), args[0])
			if err != nil {
				return err
			}
			path, err := filepath.Abs(from.Path)
			if err != nil {
				return err
			}
			from.Path = path
			given := f.sets
			// Settings that only matter in training must not cause an error.
			f.sets = append([]string{"eval.enabled=true", "checkpoint.resume=none"}, f.sets...)
			if fileIn(path, llamafile.ConfigFile) { // the initial weights may be gone; the checkpoint describes the model
				f.sets = append([]string{"model.init_from=" + path}, f.sets...)
			}
			var r *recipes.Recipe
			if recipe != "" {
				r, err = f.load(recipe)
			} else {
				r, err = f.decode(text, path)
			}
			if err != nil {
				return err
			}
			eval := func(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity) error {
				return evalWork(ctx, a, r, id, from, asJSON)
			}
			return a.start(c.Context(), r, p, ranksOf{work: eval, result: true, warnings: aboutSets(r.Warnings(), given)})
		},
	}
	f.add(c)
	c.ValidArgsFunction = nil // folders
	c.Flags().StringVar(&recipe, "recipe", "", "`file` or name of the recipe; empty: the one that the checkpoint was trained with")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// aboutSets keeps the warnings about keys that the command line sets: those about the training were printed when it ran.
func aboutSets(warnings, sets []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool {
		key, _, _ := strings.Cut(w, ": ")
		return !slices.ContainsFunc(sets, func(s string) bool { return strings.HasPrefix(s, key+"=") })
	})
}

// decode is load for the recipe in a checkpoint.
func (f *recipeFlags) decode(text, path string) (*recipes.Recipe, error) {
	if text == "" {
		return nil, launch.WithCode(launch.ExitUsage, fmt.Errorf("%s holds no recipe\nhint: name one with --recipe", path))
	}
	return counted(recipes.Decode(text, "recipe of "+path, f.all()...))
}
