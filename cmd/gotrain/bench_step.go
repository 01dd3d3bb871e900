package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/roofline"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/telemetry"
)

// stepFlags are the flags of gotrain bench step.
type stepFlags struct {
	recipeFlags
	threads, steps int
	asJSON, all    bool
}

func (a *app) benchStepCmd() *cobra.Command {
	var f stepFlags
	c := &cobra.Command{
		Use:   "step RECIPE",
		Short: "Measure the kernels of a training step beside what bounds them on this machine",
		Long: `Measure the kernels of a training step beside what bounds them on this machine: forward and backward pass and optimizer, with random
weights. A few samples are read again and again; without data they are random. Nothing is saved.

What bounds a kernel is measured in the same run, before and after every step: multiply-adds in registers, and loops that only read, copy or add,
for working sets from 16 KiB to 256 MiB. bound is the time that a kernel needs at least: its operations at that peak, or every byte that it has to
read or write once at that rate, whichever is longer. The kernels are those of the fastest step.

By default one rank uses all processors. With --ranks, all of them measure at the same time, as they train, and the table is that of rank 0.
If kernels are faster than is possible, the measurement is wrong, most likely because the processor changed its speed meanwhile: the exit
code is then 70.

GOTRAIN_MAX_ISA measures the step of an older processor. --json is for comparisons and reports: it has the processor, the libraries, the
limits and every kernel.`,
		Example: `  gotrain bench step resnet50
  gotrain bench step resnet50 --set train.dtype=bf16 --set train.batch_per_rank=16 --threads 1
  gotrain bench step llama-finetune --all | less     # every kernel with its shape
  gotrain bench step resnet50 --ranks 2 --json > step.json
  GOTRAIN_MAX_ISA=avx2 gotrain bench step resnet50`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.benchStep(c.Context(), &f, args[0]) },
	}
	f.add(c)
	fl := c.Flags()
	fl.Lookup("ranks").Usage = "measure `N` ranks at the same time (default 1)"
	fl.IntVar(&f.threads, "threads", 0, "compute threads of a rank; 0: the processors of this process, divided by the ranks")
	fl.IntVar(&f.steps, "steps", 3, "steps to measure, after one that touches all memory")
	fl.BoolVar(&f.all, "all", false, "list every kernel with its shape too")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object instead, with everything")
	return c
}

// benchStep measures in this process if it is a rank, and otherwise starts the ranks.
func (a *app) benchStep(ctx context.Context, f *stepFlags, recipe string) error {
	if f.steps < 1 || f.threads < 0 || f.ranks < 0 {
		return launch.WithCode(launch.ExitUsage, errors.New("--steps must be at least 1, --threads and --ranks at least 0"))
	}
	p, err := thisProcess()
	if err != nil {
		return err
	}
	f.sets = append([]string{"checkpoint.resume=none"}, f.sets...)
	if f.threads > 0 {
		f.sets = append(f.sets, fmt.Sprintf("train.threads_per_rank=%d", f.threads))
	}
	r, err := f.load(recipe)
	if err != nil {
		return err
	}
	if f.ranks == 0 {
		r.Train.Ranks = 1
	}
	work := func(ctx context.Context, a *app, r *recipes.Recipe, id launch.Identity) error {
		return a.profile(ctx, f, r, id)
	}
	if !p.isRank(r.Train.Ranks) { // the supervisor need not look for data that nobody reads
		r.Data.Kind = "synthetic"
	}
	return a.start(ctx, r, p, ranksOf{work: work, result: true})
}

// profile measures as one rank.
func (a *app) profile(ctx context.Context, f *stepFlags, r *recipes.Recipe, id launch.Identity) error {
	term := telemetry.NewTerminal(a.rawErr, 0, false) // the standard output is for the result
	return untilStopped(ctx, id, func() bool { return false }, func(ctx context.Context, running func(stoppable)) error {
		t, err := a.trainer(ctx, r, id, term, func(k assemble.Rank) (train.Config, error) {
			c, assumed, err := stepConfig(ctx, r, k, f.steps)
			if assumed != "" && id.Rank == 0 {
				a.note([]string{"without data, " + assumed + " are assumed"})
			}
			return c, err
		})
		if err != nil {
			return err
		}
		running(t)
		p := &profiler{steps: f.steps}
		if err := a.leave(t.Profile(context.WithoutCancel(ctx), f.steps, p)); err != nil || id.Rank != 0 {
			return err
		}
		s := p.report(r, id)
		if f.asJSON {
			err = a.printJSON(s)
		} else {
			err = a.printStep(s, f.all)
		}
		if err == nil {
			err = s.believed()
		}
		return err
	})
}

// limited is a device that measures what bounds its kernels.
type limited interface {
	Limits(ctx context.Context, s npu.Stream, mem npu.Ptr, threads int, sets ...int64) (npu.Limits, error)
	LimitBytes() int64
}

// profiler measures limits before and after each step, and keeps the fastest step.
type profiler struct {
	steps    int
	dev      npu.Device
	stream   npu.Stream
	mem      npu.Buffer
	info     npu.Info
	one, all npu.Limits // with one thread, and with all
	best     []roofline.Sample
	sum      float64 // of the kernels of the best step
	took     []float64
	part     []float64 // of a step that its kernels take
	from     usage     // when the step began
	others   []float64 // part of the processors that others had in a step
}

// Ready allocates memory for the limits.
func (p *profiler) Ready(ctx context.Context, dev npu.Device, s npu.Stream) (err error) {
	p.dev, p.stream, p.info = dev, s, dev.Info()
	l, ok := dev.(limited)
	if !ok {
		return nil
	}
	if p.mem, err = dev.Alloc(l.LimitBytes()); err != nil {
		return fmt.Errorf("memory for measuring the limits: %w", err)
	}
	return p.measureOne(ctx)
}

// measureOne measures the limits of one thread, unless Before does.
func (p *profiler) measureOne(ctx context.Context) error {
	if p.info.Threads == 1 {
		return nil
	}
	now, err := p.dev.(limited).Limits(ctx, p.stream, npu.Ptr{Buf: p.mem}, 1)
	p.one = p.one.Best(now)
	return err
}

// Before measures the limits.
func (p *profiler) Before(ctx context.Context) error {
	l, ok := p.dev.(limited)
	if !ok {
		p.from = usedNow()
		return nil
	}
	now, err := l.Limits(ctx, p.stream, npu.Ptr{Buf: p.mem}, p.info.Threads)
	p.all, p.from = p.all.Best(now), usedNow()
	return err
}

// Step keeps the kernels of the fastest step. After the last one the limits are measured once more.
func (p *profiler) Step(s train.Profiled) error {
	p.others = append(p.others, others(p.from, usedNow()))
	var sum float64
	for _, k := range s.Kernels {
		sum += k.Dur.Seconds()
	}
	if p.best == nil || sum < p.sum {
		p.sum, p.best = sum, p.best[:0]
		for _, k := range s.Kernels {
			p.best = append(p.best, roofline.Sample{Op: k.Launch.Kernel().Op(), Impl: k.Launch.Kernel().Impl(), Took: k.Dur})
		}
	}
	p.took, p.part = append(p.took, s.Took.Seconds()), append(p.part, sum/s.Took.Seconds())
	if len(p.took) < p.steps || p.mem == nil {
		return nil
	}
	ctx := context.Background()
	err := errors.Join(p.Before(ctx), p.measureOne(ctx), p.mem.Free())
	if p.info.Threads == 1 {
		p.one = p.all
	}
	return err
}

// stepReport is the result: what --json prints.
type stepReport struct {
	Version    string  `json:"version"`
	Platform   string  `json:"platform"`
	Processor  string  `json:"processor"`
	Processors int     `json:"processors"`
	Device     string  `json:"device"` // with its library and instruction set
	MaxISA     string  `json:"max_isa,omitempty"`
	MemoryMiB  int64   `json:"memory_mib"`
	Recipe     string  `json:"recipe"`
	DType      string  `json:"dtype"`
	Batch      int     `json:"batch"`
	Accumulate int     `json:"accumulate"`
	Ranks      int     `json:"ranks"`
	Threads    int     `json:"threads"` // of a rank
	Steps      int     `json:"steps"`   // measured
	Step       float64 `json:"step_seconds"`
	Part       float64 `json:"kernels_part"` // of a step that its kernels take; median
	Others     float64 `json:"others_part"`  // of all processors, used by other programs and ranks during steps; median
	// One has the limits of one thread, Limits those of all threads of a rank.
	One    npu.Limits `json:"limits_of_one_thread"`
	Limits npu.Limits `json:"limits"`
	*roofline.Report
}

// believed returns an error if kernels were faster than is possible.
func (s *stepReport) believed() error {
	if len(s.Exceeded) == 0 {
		return nil
	}
	return launch.WithCode(launch.ExitInternal, fmt.Errorf("this measurement is wrong: kernels were faster than this machine allows: %s\n"+
		"hint: the processor changed its speed, or other programs ran while the limits were measured: try again, with more --steps",
		strings.Join(s.Exceeded, "; ")))
}

func (p *profiler) report(r *recipes.Recipe, id launch.Identity) *stepReport {
	return &stepReport{
		Version: train.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Processor: processorName(), Processors: runtime.NumCPU(),
		Device: p.info.Name + " (" + p.info.Detail + ")", MaxISA: maxISA(), MemoryMiB: p.info.Memory >> 20, Recipe: r.Run.Name, DType: r.Train.DType,
		Batch: r.Train.Batch, Accumulate: r.Train.Accumulate, Ranks: max(1, id.World), Threads: p.info.Threads,
		Steps: p.steps, Step: telemetry.Median(p.took), Part: telemetry.Median(p.part),
		Others: telemetry.Median(p.others), One: p.one, Limits: p.all, Report: roofline.New(p.best, p.all),
	}
}
