package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/data/survey"
)

// surveyFlags are the flags of data check and data stats.
type surveyFlags struct {
	recipeFlags
	asJSON  bool
	workers int
}

func (a *app) dataCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "data",
		Short: "Examine a data set before training on it",
		Example: `  gotrain data check /data/photographs
  gotrain data stats /data/photographs`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.dataCheckCmd(), a.dataStatsCmd())
	return c
}

const dataPlaces = `

The data are those of a RECIPE, or a PATH: a folder of class folders, or of splits (train, val, test) with class folders; a CSV file, whose split
column is followed, or a folder with train.csv; tar shards ("train-{000..099}.tar" or "train-*.tar" in quotes), or a folder with train*.tar.`

func (a *app) dataCheckCmd() *cobra.Command {
	return a.dataVerb(&cobra.Command{
		Use:   "check RECIPE|PATH",
		Short: "Find broken, damaged and duplicate samples",
		Long: `Read every sample of a data set once and list those that cannot be read, those that are damaged but readable, and those with equal bytes: copies
in two splits make an evaluation too good, and copies with different labels teach nothing. The exit code is 66 if a sample cannot be read, and 79 after an
interruption. Duplicates and damage are reported and change no exit code.` + dataPlaces,
		Example: `  gotrain data check /data/photographs
  gotrain data check resnet50 --set data.root=/data/photographs
  gotrain data check "/data/train-{000..099}.tar" --json | jq .duplicates`,
	}, func(r *survey.Report) error { return a.printCheck(r) })
}

func (a *app) dataStatsCmd() *cobra.Command {
	return a.dataVerb(&cobra.Command{
		Use:   "stats RECIPE|PATH",
		Short: "Count samples, classes and sizes; mean and standard deviation",
		Long: `Read every sample of a data set once and print numbers: samples of each class, formats and sizes of pictures, and mean and standard deviation by
channel, for data.mean and data.std. The exit code is 66 if a sample cannot be read (it is then left out), and 79 after an interruption.` + dataPlaces,
		Example: `  gotrain data stats /data/photographs
  gotrain data stats labels.csv --json | jq '.sets[0].mean'`,
	}, func(r *survey.Report) error { return a.printStats(r) })
}

// dataVerb completes a command with what both have in common.
func (a *app) dataVerb(c *cobra.Command, print func(*survey.Report) error) *cobra.Command {
	f := &surveyFlags{}
	f.add(c)
	recipes := c.ValidArgsFunction
	c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, _ := recipes(c, args, word)
		return names, cobra.ShellCompDirectiveDefault // files and folders too
	}
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	c.Flags().IntVar(&f.workers, "workers", 0, "samples to read at the same time; 0: as many as there are cores")
	c.Args = cobra.ExactArgs(1)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		r, err := a.examine(ctx, args[0], f, c)
		if err != nil {
			return err
		}
		if f.asJSON {
			err = a.printJSON(r)
		} else {
			err = print(r)
		}
		if n := r.Broken(); err == nil && n > 0 {
			return launch.WithCode(launch.ExitNoInput, fmt.Errorf("%s cannot be read\nhint: fix or remove them, or let runs skip them with "+
				"data.bad_files = \"skip\"", several(n, "sample")))
		}
		return err
	}
	return c
}

// examine opens the data and reads all samples.
func (a *app) examine(ctx context.Context, place string, f *surveyFlags, c *cobra.Command) (*survey.Report, error) {
	if f.workers < 0 {
		return nil, launch.WithCode(launch.ExitUsage, errors.New("--workers must not be negative"))
	}
	sets, pixels, err := a.dataSets(ctx, place, f, c)
	if ctx.Err() != nil {
		return nil, launch.WithCode(launch.ExitNotResumable, errors.New("interrupted before all samples were read"))
	}
	if err != nil {
		return nil, err
	}
	line := countLine{w: a.rawErr}
	r, err := survey.Examine(ctx, sets, survey.Options{Workers: f.workers, MaxPixels: pixels, Progress: line.print})
	line.clear()
	if ctx.Err() != nil {
		return nil, launch.WithCode(launch.ExitNotResumable, errors.New("interrupted before all samples were read"))
	}
	return r, err
}

// countLine is a line that is rewritten in place on a terminal, and not printed elsewhere.
type countLine struct {
	w     any
	shown bool
}

func (l *countLine) print(done, all int) {
	f, ok := l.w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	l.shown = true
	fmt.Fprintf(f, "\r\x1b[K%3d %%  %d of %d samples", 100*done/max(1, all), done, all)
}

func (l *countLine) clear() {
	if f, ok := l.w.(*os.File); ok && l.shown {
		fmt.Fprint(f, "\r\x1b[K")
	}
}
