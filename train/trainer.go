package train

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/dirlock"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Trainer is one rank of a run. Make it with New, and call Run once.
type Trainer struct {
	cfg   Config
	began time.Time
	stop  atomic.Bool
	used  atomic.Bool // Run or Evaluate was called
	ask   request
	// evaluating means that nothing is trained, and no training sample is read.
	evaluating bool

	bus      *telemetry.Bus
	window   *telemetry.Window // items per second of the last steps
	flops    telemetry.FLOPs
	peak     float64 // FLOP/s that MFU is relative to: configured, measured, or of a step that was faster; 0 if unknown
	raised   bool    // a step was faster than the peak, which has been reported
	residual bool    // the residual of the codec was reported
	kernels  kernels
	auto     buckets                // how Config.BucketAuto cut the gradients
	conv     kernelChoice           // what chooseKernels has chosen
	tuner    tune.Tuner             // measures for chooseKernels
	planning bool                   // Summarise was called: nothing runs
	chosen   *checkpoint.Checkpoint // what peek has opened, for resume; nil: nothing
	peeked   bool                   // peek has looked for a checkpoint
	most     float64                // bytes of the device in use, the most that a step has seen; 0: it does not tell

	comm    comm.Communicator // agreements and what the host exchanges
	data    comm.Communicator // gradients and weights: comm, or a transport of the device; nil before it is open
	dev     npu.Device
	stream  npu.Stream
	train   *pass
	eval    *pass        // nil without Config.Eval
	fitted  *plan.Fitted // what Config.MemoryLimit changed; nil without a limit
	store   *store
	scratch npu.Buffer
	// evalStates are the running statistics that evaluation uses: the mean over ranks.
	evalStates []npu.Ptr
	eng        *ddp.Engine
	opt        *optim.Optimizer
	sched      optim.Schedule
	scaler     *optim.Scaler
	mover      *graph.Mover
	saver      *checkpoint.Store
	disk       checkpoint.FS    // where checkpoints are
	pulse      checkpoint.Pulse // progress on disk, for the ranks that wait
	writes     bool             // Run was called: checkpoints will be written
	lock       *dirlock.Lock    // lock of the checkpoint folder, on rank 0; nil if Config.Lock covers it
	owned      *dirlock.Lock    // the lock by which this run owns that folder; nil: this process only reads there
	loader     *data.Loader
	held       *data.Loader // held-out samples

	order    []int // weights of the program in ready order, as the engine knows them
	landed   chan landed
	marks    marks
	perEpoch int // steps per epoch
	progress

	step    int        // steps done
	first   int        // steps done when the run began
	gaveUp  bool       // the next step was abandoned
	at      data.State // where the data continues
	before  int        // epoch in which the current step began
	samples int64
	micro   []*data.Batch // batches of the current step, for messages
	valid   []int

	lastEv    map[string]float64 // last evaluation
	lastAll   Values             // with what is more than a number
	evaluated int                // the step of that evaluation
	each      *sampler           // collects every sample of an evaluation; nil: sums are enough
	owed      bool               // the evaluation after the last step is due but not done
	saved     int                // step of the newest checkpoint in the directory of this run; -1: none
	savedName string             // its name, known to rank 0
	unmarked  string             // the checkpoint that is still to be marked as the best, on rank 0
	averaged  bool               // the run resumed with the average of its weights
	best      *checkpoint.Best   // what evaluations have shown so far; nil: nothing
	early     string             // why the run ended early, with success; ""

	afterStep  func(step int) // test hook
	quiesce    time.Duration  // how long Close waits for the device
	within     func(at stage) // test hook, called within a step
	holdAfter  time.Duration  // the constant, except in tests
	pinned     pinned
	hostScale  []byte // the loss scale, f32, on its way to the device
	hostSeed   []byte // the dropout seed, i64, of each micro-batch
	hostTensor []byte // one tensor being written to a file
}

// Result describes how a run ended.
type Result struct {
	Steps   int                // steps done, including those before a resume
	Loss    float64            // mean loss of the last step; 0 if no step was left to do
	Eval    map[string]float64 // last evaluation: "loss" and the metrics that are numbers, and "items", the number evaluated
	Values  Values             // last evaluation, with the metrics that are more than a number
	Stopped bool               // ended early on request; the state is saved if there is a directory for it
	Early   string             // why Monitor.Patience has ended the run before its last step; "": it did not
	Best    *checkpoint.Best   // the best evaluation; nil: there was none
}

// New checks a configuration. It opens nothing; Run does.
func New(opts ...Option) (*Trainer, error) {
	t := &Trainer{began: time.Now(), window: &telemetry.Window{}, saved: -1, evaluated: -1, disk: checkpoint.OS{},
		quiesce: time.Minute, holdAfter: holdAfter}
	for _, o := range opts {
		o(&t.cfg)
	}
	t.cfg.ensureDefaults()
	if err := t.cfg.validate(); err != nil {
		return nil, err
	}
	t.cfg.expandGroups()
	if t.cfg.opened != nil {
		t.cfg.opened(t)
	}
	return t, nil
}

// open sets up everything that Run needs, in the order of the design: device, graph, plan, buckets, memory, weights, data.
func (t *Trainer) open(ctx context.Context) (err error) {
	t.bus = telemetry.NewBus(t.cfg.Sinks...)
	if t.comm = t.cfg.Comm; t.comm == nil {
		t.comm = alone()
	}
	defer comm.Steady(t.comm, "starting", nil)() // Note [who waits for whom]
	if t.writes {
		if err = t.own(ctx); err != nil {
			return err
		}
	}
	if err = t.openDevice(); err != nil {
		return err
	}
	if t.stream, err = t.dev.NewStream("compute"); err != nil {
		return err
	}
	if err = t.openData(); err != nil {
		return err
	}
	if !t.evaluating {
		if t.sched, err = t.cfg.Schedule(t.whole, t.perEpoch); err != nil {
			return err
		}
	}
	if t.scaler, err = t.cfg.Scaler.New(); err != nil {
		return err
	}
	if t.cfg.SaveDir != "" {
		t.saver = checkpoint.New(t.files(), t.cfg.SaveDir, t.cfg.KeepLast)
	}
	if err = t.compile(ctx); err != nil {
		return err
	}
	if err = t.fitMemory(ctx, t.comm.Size(), t.hostsOfJob()); err != nil {
		return err
	}
	t.sayLimit()
	if err = t.openTransport(ctx); err != nil {
		return err
	}
	if err = t.openEngine(ctx); err != nil {
		return err
	}
	if err = t.bind(); err != nil {
		return err
	}
	t.mover = graph.NewMover(t.dev, t.stream)
	if err = t.initialise(ctx); err != nil {
		return err
	}
	if !t.evaluating {
		t.loader.Start()
	}
	return nil
}

// openDevice opens the configured device family, or the best one that opens, with a warning if a better one does not.
func (t *Trainer) openDevice() (err error) {
	o := npu.Options{Index: t.cfg.LocalRank, Threads: t.cfg.Threads, Share: t.cfg.LocalSize, CPUs: t.cfg.CPUs, Compute: t.cfg.Compute,
		Extra: maps.Clone(t.cfg.Options)}
	if o.Extra == nil {
		o.Extra = map[string]string{}
	}
	if o.Threads == 0 { // a device counts cores and does not know about quotas
		place, err := launch.Place(launch.Identity{LocalWorld: o.Share}, os.LookupEnv)
		if err == nil && place.Why != "" {
			o.Threads = place.Threads
			slog.Info(place.Why)
		}
	}
	if _, set := o.Extra["calibrate"]; !set && t.cfg.PeakFLOPS == 0 {
		o.Extra["calibrate"] = "true" // takes 0.1 s; for MFU and predictions
	}
	if t.cfg.Device != "" {
		t.dev, err = npu.Open(t.cfg.Device, o)
	} else {
		var passed error
		if t.dev, passed, err = npu.OpenBest(o); passed != nil {
			slog.Warn("computing on a slower device, because a better one cannot be opened", "device", t.dev.Info().Name, "reason", passed)
		}
	}
	if err != nil {
		return err
	}
	t.pinned.dev = t.dev
	if err := t.dev.Info().Computes(t.cfg.Compute); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if t.peak = t.cfg.PeakFLOPS; t.peak <= 0 {
		t.peak = t.dev.Info().Peak[t.cfg.Compute]
	}
	return nil
}

// openData makes the loaders and computes the length of the run.
func (t *Trainer) openData() error {
	c := &t.cfg
	if err := t.openHeld(); err != nil || t.evaluating {
		t.perEpoch, t.progress = 1, progress{whole: 1, total: 1}
		return err
	}
	var err error
	t.loader, err = data.NewLoader(c.Data, data.Options{
		Batch: c.Batch, Rank: t.comm.Rank(), World: t.comm.Size(), Seed: c.Seed, Shuffle: !c.NoShuffle, Tail: c.Tail,
		Repeat: c.Repeat, Groups: c.Balance,
		Workers: c.Workers, Prefetch: 2, SkipBad: c.SkipBad, OnSkip: t.skipped, Alloc: t.pinned.alloc,
	})
	if err != nil {
		return err
	}
	batches := t.loader.Sampler().Batches()
	t.perEpoch = max(1, batches/c.Accumulate)
	if batches == 0 {
		return fmt.Errorf("train: %s has %d samples, fewer than one batch of %d on each of %d ranks\nhint: use a smaller batch, or fewer ranks",
			c.Data.Name(), c.Data.Len(), c.Batch, t.comm.Size())
	}
	t.progress = newProgress(t.loader.Sampler(), c.Accumulate, c.Steps, c.Epochs)
	return nil
}

// openHeld makes the loader of the held-out samples, if any.
func (t *Trainer) openHeld() (err error) {
	c := &t.cfg
	if c.Eval == nil {
		return nil
	}
	t.held, err = data.NewLoader(c.Eval, data.Options{
		Batch: c.EvalBatch, Rank: t.comm.Rank(), World: t.comm.Size(), Tail: data.Short, Epochs: 1,
		Workers: c.Workers, Prefetch: 1, SkipBad: c.SkipBad, OnSkip: t.skipped, Alloc: t.pinned.alloc,
	})
	return err
}

func (t *Trainer) skipped(index int, err error) {
	slog.Warn("sample skipped", "index", index, "reason", err)
}

// compile builds and compiles the training network and, with the same parameter layouts, the evaluation network.
func (t *Trainer) compile(ctx context.Context) error {
	c := &t.cfg
	opts := append(slices.Clone(c.Graph), c.groupOption())
	net, err := build(c.Model, c.Data.Fields(), c.Batch, true, opts)
	if err != nil {
		return err
	}
	g, err := net.b.Lower()
	if err != nil {
		return err
	}
	graphs := []*plan.Graph{g}
	var held *network
	if c.Eval != nil {
		if held, err = build(c.Model, c.Eval.Fields(), c.EvalBatch, false, opts); err == nil && t.each != nil {
			if held.logits == nil {
				return errNoLogits
			}
			held.b.Output(logitsOut, held.logits)
		}
		if err == nil {
			g, err = held.b.Lower()
		}
		if err != nil {
			return fmt.Errorf("train: evaluation network: %w", err)
		}
		graphs = append(graphs, g)
	}
	if err := t.chooseKernels(ctx, graphs...); err != nil {
		return err
	}
	prog, err := graph.CompileGraph(graphs[0], t.dev, t.planOptions())
	if err != nil {
		return err
	}
	t.train = newPass(net, prog, c.Batch)
	if w := t.train.unchecked(t.dev.Info()); w != "" && t.comm.Rank() == 0 {
		slog.Warn(w)
	}
	if c.Eval == nil {
		return nil
	}
	o := graph.Options{Compute: c.Compute, Layouts: prog.Layouts(), Algorithm: t.conv.algorithm()}
	if prog, err = graph.CompileGraph(graphs[1], t.dev, o); err != nil {
		return fmt.Errorf("train: evaluation network: %w", err)
	}
	t.eval = newPass(held, prog, c.EvalBatch)
	return t.checkMetric()
}

// planOptions returns the options for planning the training network.
func (t *Trainer) planOptions() graph.Options {
	return graph.Options{Compute: t.cfg.Compute, Accumulate: t.cfg.Accumulate > 1, Recompute: t.cfg.Recompute,
		Algorithm: t.conv.algorithm()}
}
