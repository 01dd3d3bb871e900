package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/telemetry"
)

// dataFlags are the flags of gotrain bench data.
type dataFlags struct {
	recipeFlags
	workers, steps int
	seconds        float64
	noStep, asJSON bool
}

func (a *app) benchDataCmd() *cobra.Command {
	var f dataFlags
	c := &cobra.Command{
		Use:   "data RECIPE",
		Short: "Measure how fast samples are loaded, and whether data or compute bounds a run",
		Long: `Measure how fast the samples of a recipe are loaded on this machine, without training: pictures or tokens per second with as many workers
as a rank of the run has, the same for each processor that they keep busy, and what the time goes to. Then measure a few training steps of one rank, with
samples that are in memory, and say which of the two bounds a run, and what to change.

Files are read as often as the measurement needs them, so all but the first pass come from the memory of the system; a run that reads
from a slow disk or a network for the first time waits for those too. Nothing is saved.`,
		Example: `  gotrain bench data resnet50
  gotrain bench data resnet50 --set data.root=/data/flowers --workers 2
  gotrain bench data quickstart --ranks 2
  gotrain bench data llama-finetune --no-step        # the samples alone
  gotrain bench data resnet50 --json | jq .bound`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.benchData(c.Context(), &f, args[0]) },
	}
	f.add(c)
	fl := c.Flags()
	fl.Lookup("ranks").Usage = "the run has `N` ranks on this machine (default: as the recipe says); one of them is measured"
	fl.IntVar(&f.workers, "workers", 0, "goroutines of a rank that load samples; 0: as the recipe says")
	fl.Float64Var(&f.seconds, "seconds", 3, "how long to load samples")
	fl.IntVar(&f.steps, "steps", 3, "training steps to measure, after one that touches all memory")
	fl.BoolVar(&f.noStep, "no-step", false, "load samples only")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object instead")
	return c
}

// benchData measures in this process, as one rank.
func (a *app) benchData(ctx context.Context, f *dataFlags, recipe string) error {
	if f.steps < 1 || f.workers < 0 || f.ranks < 0 || !(f.seconds > 0) || f.seconds > 3600 {
		return launch.WithCode(launch.ExitUsage, errors.New("--steps must be at least 1, --workers and --ranks at least 0, --seconds more than 0 and at most 3600"))
	}
	p, err := thisProcess()
	if err != nil {
		return err
	}
	if p.id.Source != launch.SourceSingle || p.pod != nil {
		return launch.WithCode(launch.ExitUsage, errors.New("gotrain bench data measures one rank\nhint: start it without a launcher, and say --ranks"))
	}
	f.sets = append([]string{"checkpoint.resume=none"}, f.sets...)
	if f.workers > 0 {
		f.sets = append(f.sets, fmt.Sprintf("data.workers_per_rank=%d", f.workers))
	}
	r, err := f.load(recipe)
	if err != nil {
		return err
	}
	// The rank that is measured has the share of the processors that it has in the run.
	d := &dataReport{Version: train.Version(), Processor: processorName(), Processors: runtime.NumCPU(), Recipe: r.Run.Name, Kind: r.Data.Kind,
		Ranks: r.Train.Ranks, Batch: r.Train.Batch, Accumulate: r.Train.Accumulate, DType: r.Train.DType}
	if r.Train.Threads == 0 {
		r.Train.Threads = max(1, d.Processors/d.Ranks)
	}
	d.Threads, r.Train.Ranks, r.Eval.Enabled = r.Train.Threads, 1, false
	work := func(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity) error {
		return a.measureData(ctx, f, r, id, d)
	}
	return a.start(ctx, r, p, ranksOf{work: work, result: true})
}

// measureData fills and prints the report.
func (a *app) measureData(ctx context.Context, f *dataFlags, r *recipes.Recipe, id launch.Identity, d *dataReport) error {
	return untilStopped(ctx, id, func() bool { return false }, func(ctx context.Context, running func(stoppable)) error {
		place, err := launch.Place(id, os.LookupEnv)
		if err != nil {
			return err
		}
		if err := findData(r); err != nil {
			return err
		}
		src, _, err := assemble.Data(ctx, r, assemble.Rank{Identity: id, Placement: place})
		if err != nil {
			return err
		}
		if err := d.load(ctx, src, r, time.Duration(f.seconds*float64(time.Second))); err != nil {
			return err
		}
		if !f.noStep {
			term := telemetry.NewTerminal(a.rawErr, 0, false) // the standard output is for the result
			t, err := a.trainer(ctx, r, id, term, func(k assemble.Rank) (train.Config, error) {
				c, _, err := stepConfig(ctx, r, k, f.steps)
				return c, err
			})
			if err != nil {
				return err
			}
			running(t)
			var s stepTimes
			if err := a.leave(t.Profile(context.WithoutCancel(ctx), f.steps, &s)); err != nil {
				return err
			}
			d.Step = telemetry.Median(s.took)
		}
		d.judge()
		if f.asJSON {
			return a.printJSON(d)
		}
		return a.printData(d)
	})
}

// stepTimes keeps how long steps took.
type stepTimes struct{ took []float64 }

func (s *stepTimes) Ready(context.Context, npu.Device, npu.Stream) error { return nil }
func (s *stepTimes) Before(context.Context) error                        { return nil }
func (s *stepTimes) Step(p train.Profiled) error {
	s.took = append(s.took, p.Took.Seconds())
	return nil
}

// load measures a loader whose batches nobody uses.
func (d *dataReport) load(ctx context.Context, src data.Source, r *recipes.Recipe, least time.Duration) error {
	l, err := data.NewLoader(src, data.Options{Batch: r.Train.Batch, Seed: uint64(r.Run.Seed), Shuffle: r.Data.Shuffle, Tail: data.Pad, Workers: r.Data.Workers,
		SkipBad: r.Data.BadFileLimit, Nice: -1})
	if err != nil {
		return err
	}
	defer l.Close()
	d.Source, d.Samples, d.Workers, d.Items, d.perSample = src.Name(), src.Len(), l.Workers(), "samples", 1
	switch fields := src.Fields(); {
	case fields[0].Name == "tokens":
		d.Items, d.perSample = "tokens", fields[0].Elems()
	case fields[0].Name == "image":
		d.Items = "pictures"
	}
	if b, ok := src.(interface{ Decoders() string }); ok {
		d.Decoder = b.Decoders()
	}
	next := func() error {
		b, err := l.Next(ctx)
		if err == nil {
			b.Release()
		}
		return err
	}
	for range 3 { // memory is touched, tables are made, and the workers are ahead
		if err := next(); err != nil {
			return err
		}
	}
	s, staged := src.(data.Staged)
	var before []data.Stage
	if staged {
		before = s.Stages()
	}
	load, cpu, begin, n := l.Stats().Load, processTime(), time.Now(), 0
	for n == 0 || time.Since(begin) < least {
		if err := next(); err != nil {
			return err
		}
		n += r.Train.Batch
	}
	took := time.Since(begin).Seconds()
	cpu, load = processTime()-cpu, l.Stats().Load-load
	d.Seconds, d.Rate = took, float64(n*d.perSample)/took
	d.PerCore = float64(n*d.perSample) / min(cpu.Seconds(), took*float64(d.Processors))
	if !staged {
		d.Stages = []stageReport{{Name: "load", Share: 1, Micros: micros(load) / float64(n)}}
		return nil
	}
	var sum time.Duration
	for i, now := range s.Stages() {
		now.Took -= before[i].Took
		sum += now.Took
		d.Stages = append(d.Stages, stageReport{Name: now.Name, Micros: micros(now.Took) / float64(n)})
	}
	for i := range d.Stages {
		d.Stages[i].Share = d.Stages[i].Micros * float64(n) / max(micros(sum), 1e-9)
	}
	return nil
}

// processTime is the processor time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
