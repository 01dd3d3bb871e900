package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	var show evalFlags
	c := &cobra.Command{
		Use:   "eval CHECKPOINT",
		Short: "Evaluate a checkpoint on held-out samples",
		Long: `Evaluate a checkpoint on held-out samples. CHECKPOINT is the folder of one, or a folder of several or of a run, where the newest good one is
used. The recipe is the one that the checkpoint was trained with, unless --recipe names another; --set changes keys, for example to
evaluate on other data. Class folders are matched by name with the classes that the checkpoint was trained on; training samples are not
needed. Every sample counts exactly once, whatever the number of ranks.

Of a network that classifies, --classes prints the accuracy of each class, --confusion which class is taken for which (a file .csv or .png, or - for
the terminal), --worst the samples of the largest losses, which often are wrong labels or broken pictures, and --predictions writes every sample to
a file .csv or .jsonl.`,
		Example: `  gotrain eval runs/resnet50/checkpoints
  gotrain eval runs/resnet50/checkpoints/best
  gotrain eval runs/resnet50/checkpoints/step-00000090 --set data.root=/data/other
  gotrain eval runs/resnet50/checkpoints --ranks 1 --json
  gotrain eval runs/resnet50 --classes --worst 20 --confusion - --confusion confusion.png --predictions predictions.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := thisProcess()
			if err == nil {
				err = show.check(p.first())
			}
			if err != nil {
				return err
			}
			for again := 0; ; again++ {
				path, err := a.evalOnce(c.Context(), p, args[0], recipe, f, &show)
				if err == nil || again == 3 || p.pod != nil || p.id.Source != launch.SourceSingle || !rotated(path, args[0]) {
					return err
				}
				fmt.Fprintf(a.err, "%s was removed meanwhile by the run that writes there: a newer one is evaluated\n", filepath.Base(path))
			}
		},
	}
	f.add(c)
	c.ValidArgsFunction = nil // folders
	c.Flags().StringVar(&recipe, "recipe", "", "`file` or name of the recipe; empty: the one that the checkpoint was trained with")
	c.Flags().BoolVar(&show.asJSON, "json", false, "print the result as JSON")
	c.Flags().BoolVar(&show.classes, "classes", false, "print samples, accuracy, precision and F1 of each class")
	c.Flags().StringArrayVar(&show.confusion, "confusion", nil, "`file` (.csv, .png) for the confusion matrix, or - for the terminal; may be repeated")
	c.Flags().IntVar(&show.worst, "worst", 0, "print the `N` samples of the largest losses")
	c.Flags().StringVar(&show.predictions, "predictions", "", "`file` (.csv, .jsonl) for label, prediction and loss of every sample")
	c.Flags().IntVar(&show.top, "top", 5, "how many of the likeliest classes to write to .jsonl")
	return c
}

// evalOnce evaluates the checkpoint that arg stands for now, and returns its folder.
func (a *app) evalOnce(ctx context.Context, p process, arg, recipe string, f recipeFlags, show *evalFlags) (path string, err error) {
	from, text, err := openCheckpoint(ctx, arg)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(from.Path); err != nil {
		return "", err
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
		return path, err
	}
	eval := func(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity) error {
		return evalWork(ctx, a, r, id, from, show)
	}
	return path, a.start(ctx, r, p, ranksOf{work: eval, result: true, warnings: aboutSets(r.Warnings(), given)})
}

// rotated reports whether a checkpoint has gone and the argument stands for another one now: a run in progress keeps the newest few.
func rotated(path, arg string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	now, other := filepath.Abs(findModel(arg))
	return errors.Is(err, fs.ErrNotExist) && other == nil && now != path && holdsCheckpoint(now)
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
