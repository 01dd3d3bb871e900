package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/perf"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/telemetry"
)

// benched are the collectives that gotrain bench measures, with the names under which other programs do.
var benched = []struct {
	kind    comm.Kind
	aliases []string
	what    string
}{
	{comm.AllReduce, []string{"all_reduce", "all-reduce", "all_reduce_test", "hccl_allreduce_test", "all_reduce_perf"}, "the sum of all ranks, on every rank"},
	{comm.AllGather, []string{"all_gather", "all-gather", "all_gather_test", "hccl_allgather_test", "all_gather_perf"}, "the parts of all ranks, on every rank"},
	{comm.ReduceScatter, []string{"reduce_scatter", "reduce-scatter", "reduce_scatter_test", "hccl_reducescatter_test", "reduce_scatter_perf"},
		"a part of the sum on each rank"},
	{comm.AllToAll, []string{"all_to_all", "all-to-all", "alltoall_test", "all_to_all_test", "hccl_alltoall_test", "alltoall_perf"},
		"a part of every rank on every other"},
	{comm.Broadcast, []string{"broadcast_test", "hccl_broadcast_test", "broadcast_perf"}, "the data of one rank, on every rank"},
	{comm.Reduce, []string{"reduce_test", "hccl_reduce_test", "reduce_perf"}, "the sum of all ranks, on one of them"},
}

func (a *app) benchCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure collectives, the kernels of a step or the loading of data, and what bounds them",
		Long: `gotrain bench step measures the kernels of a training step beside what bounds them on this machine. gotrain bench data measures how fast
samples are loaded, and says whether data or compute bounds a run.

The others measure the collectives between ranks over a range of sizes, in the way in which training uses them. Every element is compared with what it
must be. The last line says what bounds the largest size: the part of the link that gotrain uses, or of memory bandwidth.

This is the tool where other systems have hccl_allreduce_test, the all_reduce_test of hccl_test, or the all_reduce_perf of nccl-tests; their
options are understood. It measures memory of the host; HCCL between NPUs is measured by hccl_test itself.`,
		Example: `  gotrain bench allreduce
  gotrain bench alltoall --ranks 4 --max 16M
  gotrain bench step resnet50
  gotrain bench data resnet50`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown benchmark %q for %q\nhint: one of step, data, %s", args[0], c.CommandPath(), strings.Join(benchNames(), ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for i := range benched {
		c.AddCommand(a.benchOne(i))
	}
	c.AddCommand(a.benchStepCmd(), a.benchDataCmd())
	return c
}

func benchNames() (names []string) {
	for _, b := range benched {
		names = append(names, b.kind.String())
	}
	return names
}

// benchFor returns the collective that a program of another system measures, such as hccl_allreduce_test; "" if it is none.
func benchFor(program string) string {
	for _, b := range benched {
		if slices.Contains(b.aliases, program) {
			return b.kind.String()
		}
	}
	return ""
}

func (a *app) benchOne(i int) *cobra.Command {
	b := benched[i]
	f := benchFlags{kind: b.kind}
	c := &cobra.Command{
		Use:     b.kind.String(),
		Aliases: b.aliases,
		Short:   "Measure " + b.kind.String() + ": " + b.what,
		Long: fmt.Sprintf(`Measure %v: %s. Without a launcher, gotrain starts --ranks processes on this machine;
under mpirun, torchrun, srun or hcclrun each process is one rank.

time is in microseconds, the median of the slowest rank; min and p99 are its fastest and its slowest hundredth. bytes is the larger side
of the call. algbw is bytes / time; busbw is what the link of a rank carries for that: %s.
wrong counts the elements that differ from what they must be, over all ranks and repetitions; if there are any, the exit code is 70.
Lines that begin with # are not part of the table.

The short options are those of hccl_test (-b -e -i -f -n -w -c -d -o -r -p); its long ones and fp32, fp16, bfp16 are understood too.`,
			b.kind, b.what, busWords(b.kind)),
		Example: benchExamples(b.kind),
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.bench(c.Context(), &f) },
	}
	f.add(c)
	return c
}

// busWords says what busbw is.
func busWords(kind comm.Kind) string {
	switch f := perf.BusFactor(kind, 2); {
	case f > 0.9 && kind == comm.AllReduce:
		return "algbw × 2(w−1)/w, on w ranks"
	case f < 1:
		return "algbw × (w−1)/w, on w ranks"
	}
	return "as much"
}

func benchExamples(kind comm.Kind) string {
	s := fmt.Sprintf("  gotrain bench %v\n  gotrain bench %[1]v --ranks 4 --min 64K --max 64M --factor 2 --dtype bf16", kind)
	if kind == comm.AllReduce {
		s += "\n  gotrain bench allreduce -b 8K -e 64M -f 2 -d fp32 -o sum -p 2" +
			"\n  mpirun -np 4 gotrain bench allreduce --json" +
			"\n  hcclrun -n 2 gotrain bench allreduce --transport tcp"
	}
	return s
}

// bench measures in this process if it is a rank, and otherwise starts the ranks.
func (a *app) bench(ctx context.Context, f *benchFlags) error {
	id, err := launch.Self()
	if err != nil {
		return err
	}
	cfg, err := f.config()
	if err != nil {
		return launch.WithCode(launch.ExitUsage, err)
	}
	world := id.World
	if id.Source == launch.SourceSingle {
		world = f.ranksOr(2)
	}
	if f.root >= world {
		return launch.WithCode(launch.ExitUsage, fmt.Errorf("--root %d: there are %s, from 0", f.root, amounts(world, "rank")))
	}
	launch.OutliveReaders()
	noQuit := launch.ExitOnQuit()
	defer noQuit()
	if id.Source != launch.SourceSingle {
		if f.ranks != 0 && f.ranks != id.World && id.Rank == 0 && id.Source != launch.SourceGotrain {
			fmt.Fprintf(a.err, "%d ranks, set by %s; --ranks %d is ignored\n", id.World, id.Source, f.ranks)
		}
		return a.benchRank(ctx, f, cfg, id)
	}
	if f.ranks == 1 {
		return a.benchRank(ctx, f, cfg, id)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the program itself: %w", err)
	}
	defer shm.Sweep("") // ranks that were killed while joining leave a file
	noQuit()            // the supervisor forwards the signal
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &watched{w: os.Stdout, failed: cancel}
	err = launch.Supervise(ctx, launch.Job{Argv: append([]string{exe}, os.Args[1:]...), Ranks: f.ranksOr(2), Stdout: out, Result: true})
	if gone := out.err.Load(); gone != nil {
		return launch.WithCode(launch.ExitStorage, fmt.Errorf("the result cannot be written: %w", *gone))
	}
	return err
}

// watched is the supervisor's standard output: ranks need not go on for a reader that is gone.
type watched struct {
	w      io.Writer
	failed func()
	err    atomic.Pointer[error]
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.err.CompareAndSwap(nil, &err)
		w.failed()
	}
	return n, err
}

// benchRank measures as one rank.
func (a *app) benchRank(ctx context.Context, f *benchFlags, cfg perf.Config, id launch.Identity) error {
	who := telemetry.Identity{Node: max(0, id.NodeRank), Rank: id.Rank, World: id.World}
	term := telemetry.NewTerminal(a.rawErr, 0, false) // the standard output is for the result
	level := a.level.least()
	if level == slog.LevelInfo { // the head of the table says where the ranks are and how they are connected
		level = slog.LevelWarn
	}
	slog.SetDefault(slog.New(telemetry.NewHandler(term, who, telemetry.LogOptions{Level: level, NoPrefix: id.Source == launch.SourceGotrain})))
	never := func() bool { return false }
	err := untilStopped(ctx, id, never, func(ctx context.Context, running func(stoppable)) error {
		c, err := train.MeetBy(ctx, id, f.links())
		if err != nil {
			return err
		}
		if c == nil {
			c = self.New()
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		run := &benchRun{app: a, f: f, c: c, node: train.Placed(id, c).NodeRank, cancel: cancel}
		running(run)
		if cfg.Start, err = starter(ctx, id, c); err == nil {
			err = run.measure(ctx, cfg)
		}
		if err != nil && !run.orderly(err) {
			launch.Report(launch.WithCode(exitCode(err), err))
			c.Abort(err)
			if cfg.Start != nil {
				cfg.Start.Abort(err)
			}
		}
		if cfg.Start != nil {
			err = errors.Join(err, cfg.Start.Close())
		}
		return errors.Join(err, c.Close())
	})
	if stopped := launch.ExitCode(err) == launch.ExitNotResumable; stopped && id.Source == launch.SourceGotrain {
		return launch.WithCode(launch.ExitNotResumable, errors.New("")) // the supervisor says it
	}
	return err
}

// benchRun is a measurement under way.
type benchRun struct {
	*app
	f      *benchFlags
	c      comm.Communicator
	node   int
	cancel context.CancelFunc
	asked  atomic.Bool
	wrong  bool
}

// Stop ends the measurement before its next call, on all ranks together.
func (r *benchRun) Stop() { r.asked.Store(true) }

// Abandon ends it at once.
func (r *benchRun) Abandon() { r.cancel() }

// orderly reports whether all ranks end together, so that nobody need be told.
func (r *benchRun) orderly(err error) bool {
	return r.wrong || launch.ExitCode(err) == launch.ExitNotResumable && !errors.Is(err, context.Canceled) || r.result.failed() != nil
}

// measure measures, prints, and returns an error if an element was wrong.
func (r *benchRun) measure(ctx context.Context, cfg perf.Config) error {
	cfg.Stop = func() bool { return r.asked.Load() || r.result.failed() != nil }
	if r.f.compresses() {
		if err := encodedSums(&cfg, r.f.compress, r.c); err != nil {
			return err
		}
	}
	p := &benchPrinter{app: r.app, f: r.f, rank: r.c.Rank(), node: r.node}
	if err := p.head(ctx, r.c, cfg); err != nil {
		return err
	}
	sum, err := perf.Run(ctx, r.c, cfg, p.row)
	switch {
	case r.result.failed() != nil:
		return r.result.failed()
	case errors.Is(err, perf.ErrStopped):
		return launch.WithCode(launch.ExitNotResumable, errors.New("stopped on request"))
	case err != nil && ctx.Err() != nil:
		return launch.WithCode(launch.ExitNotResumable, fmt.Errorf("stopped on request, in the middle of a call: %w", context.Canceled))
	case err != nil:
		return err
	}
	p.tail(sum)
	if sum.Wrong > 0 {
		r.wrong = true
		text := ""
		if r.c.Rank() == 0 {
			text = fmt.Sprintf("%s wrong\nhint: please report it, with this output and that of gotrain doctor", amounts(int(sum.Wrong), "element"))
		}
		return launch.WithCode(launch.ExitInternal, errors.New(text))
	}
	return nil
}

// rounded shortens a number for JSON.
func rounded(v float64, digits int) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	p := math.Pow10(digits)
	return math.Round(v*p) / p
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }
