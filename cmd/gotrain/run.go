package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
)

func (a *app) runCmd() *cobra.Command {
	var f recipeFlags
	c := &cobra.Command{
		Use:   "run RECIPE",
		Short: "Train according to a recipe",
		Long: `Train according to a recipe. RECIPE is a file, or the name of a recipe in the binary.

Without a launcher, gotrain starts train.ranks processes on this machine and supervises them. Under mpirun, torchrun, srun or hcclrun each
process is one rank, and the launcher decides how many there are. In a pod of the Ascend operator, of PyTorchJob or of Volcano, gotrain
starts the ranks of that pod. GOTRAIN_LAUNCHER=none ignores what a launcher left in the environment.

gotrain itself starts ranks on this machine only. For several, hcclrun starts it on each of them (hcclrun --help, docs/cluster.md):

  hcclrun -H n1:8,n2:8 gotrain run my.toml

SIGTERM, SIGINT, SIGUSR1 and SIGHUP end the run after the step under way: all ranks agree, a checkpoint is written, the exit code is 75, and
the same command resumes from there. A second SIGTERM or SIGINT, at least one second later, abandons that step and saves the one before; a
third kills the ranks. If no step was complete, without checkpoints, or with checkpoint.resume=none, the exit code is 79: the same command
starts over.

A console that is closed, full or paused does not end the run.

One run at a time owns an output folder: a second one ends with exit code 73 and names the owner.`,
		Example: `  gotrain run recipes/resnet50.toml
  gotrain run resnet50 --set data.root=/data/my-photographs --set train.dtype=bf16
  gotrain run my.toml --ranks 4 --set run.steps=100 --set checkpoint.resume=none
  mpirun -np 4 gotrain run my.toml`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "-" {
				return launch.WithCode(launch.ExitUsage, errors.New(
					"a recipe on standard input can be validated and planned, but not run: each rank reads it again\nhint: save it to a file"))
			}
			return a.onRanks(c.Context(), &f, args[0], trainWork)
		},
	}
	f.add(c)
	return c
}

// work is what a process does once it knows which rank it is.
type work func(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity) error

// onRanks does the work in this process if it is a rank, and otherwise starts the ranks.
func (a *app) onRanks(ctx context.Context, f *recipeFlags, recipe string, w work) error {
	p, err := thisProcess()
	if err != nil {
		return err
	}
	r, err := f.load(recipe)
	if err != nil {
		return err
	}
	if p.first() { // which reads them for all; the other ranks may be on machines without them
		if err := assemble.FindWeights(r); err != nil {
			return err
		}
	}
	return a.start(ctx, r, p, ranksOf{work: w, warnings: r.Warnings()})
}

// ranksOf is what the ranks of a command do.
type ranksOf struct {
	work     work
	warnings []string // about the recipe, printed once
	result   bool     // standard output is the result
}

// start is onRanks with a loaded recipe.
func (a *app) start(ctx context.Context, r *recipes.Recipe, p process, do ranksOf) error {
	launch.OutliveReaders()
	noQuit := launch.ExitOnQuit()
	defer noQuit()
	if p.speaks() {
		a.note(r.Taken())
		a.warn(do.warnings)
	}
	if p.isRank(r.Train.Ranks) {
		return do.work(ctx, a, r, p.id)
	}
	// Report problems common to all ranks once, before starting any.
	if err := findData(r); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the program itself: %w", err)
	}
	defer shm.Sweep("") // ranks that were killed while joining leave a file
	env := os.Environ()
	if n := r.Train.Threads; n > 0 {
		env = append(env, fmt.Sprintf("GOTRAIN_THREADS=%d", n)) // the recipe wins over the environment, as it does in a rank
	}
	noQuit() // the supervisor forwards the signal
	job := launch.Job{
		Env:  env,
		Argv: append([]string{self}, os.Args[1:]...), Ranks: r.Train.Ranks, NoPin: !r.Train.PinCPUs, NUMA: nodeOf(r.Train.Device),
		Result: do.result,
		Grace:  time.Duration(r.Train.GraceSeconds * float64(time.Second)),
	}
	if p.pod != nil {
		p.pod.Place(&job)
		job.Env = append(job.Env, p.pod.Environ()...)
	}
	return launch.Supervise(ctx, job)
}
