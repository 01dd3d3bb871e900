package train

import (
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/dirlock"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Config is everything that a run depends on. Use it directly, or through the options of New; the zero value of a field is
// what its comment says.
type Config struct {
	Name  string         // of the run, for logs; "run"
	Model Model          // needed
	Graph []graph.Option // for both networks: graph.AllowUnreached, graph.Salt
	Seed  uint64         // of weights, order and augmentation

	Data data.Source // training samples; needed
	Eval data.Source // held-out samples; nil: no evaluation

	Batch      int // rows of a micro-batch on each rank; needed
	Accumulate int // micro-batches of a step; 1
	EvalBatch  int // rows of an evaluation batch; Batch

	Steps  int     // optimizer steps in all; 0: Epochs decides
	Epochs float64 // passes over Data in all; used where Steps is 0

	Optim    optim.Config
	Groups   []ParamGroup // parameters with a learning rate or decay of their own, or frozen; see ParamGroup
	Schedule Schedule
	ClipNorm float64             // limit of the global gradient norm; 0: none
	Scaler   *optim.ScalerConfig // loss scaling; nil: none, which is right for f32 and bf16

	// Recompute keeps only what leaves a block of the model and computes the rest again in the backward pass: less memory, more time, the same numbers.
	Recompute bool

	Device   string    // family: "cpu", "ref"; "": cpu where it can be opened, else ref with a warning
	Compute  npu.DType // of activations: F32 or BF16; F32
	Threads  int       // compute threads of this rank; 0: cores of this process / ranks on this machine
	CPUs     []int     // processors to bind compute threads to
	Options  map[string]string
	BucketMB float64 // cap of a gradient bucket in MiB; 25
	FirstMB  float64 // cap of the first one in MiB; 1

	Comm      comm.Communicator // joins the ranks; nil: this process is alone
	LocalRank int               // index on this machine; Comm.Rank() where LocalSize is 0
	LocalSize int               // ranks on this machine; Comm.Size()
	Node      int               // index of this machine, for log lines
	Timeout   time.Duration     // how long a collective waits for a rank that shows no life; 5 minutes
	LongWork  time.Duration     // how long it waits for a rank that writes or reads a checkpoint, or still starts; 1 hour
	Same      []comm.Item       // further things that ranks must agree on, such as a hash of the recipe

	Workers     int       // data goroutines; 0: chosen
	Tail        data.Tail // what happens to the ragged end of a training epoch
	SkipBad     int       // samples that may be unreadable before the run fails
	NoShuffle   bool
	EvalEvery   int           // steps between evaluations; 0: after the last step only, -n: after every n epochs
	SaveEvery   int           // steps between checkpoints; 0: only at the end and when stopped, -n: after every n epochs
	SaveDir     string        // of checkpoints; rank 0 becomes its owner for the time of Run, or Run fails with a *dirlock.BusyError
	Lock        *dirlock.Lock // of a folder that the caller owns; where that is SaveDir, Run does not take it again
	KeepLast    int           // checkpoints kept; 2
	Resume      bool          // go on from the newest good checkpoint in SaveDir, if there is one
	ResumeFrom  string        // a checkpoint directory, or a directory of checkpoints; it must exist
	InitFrom    string        // what to take weights from at step 0: a safetensors file, a checkpoint, or what Weights opens
	InitPartial bool          // parameters whose name or shape is not in InitFrom keep their own start (a new classifier)
	// InitIgnore are patterns of tensors, such as "fc.*" or "*", that InitFrom and a checkpoint may hold without the model having them. Any other is an error: it
	// tells that they are another model's.
	InitIgnore []string
	// Recognise guesses from the names of tensors whose weights they are, for the message where they do not fit; nil: no guess.
	Recognise  func(names []string) string
	RecipeText string // stored in checkpoints
	// Settings are what decides about the numbers, by name; checkpoints hold them, and a resumed run says which differ. nil: what the trainer itself knows, in one line.
	Settings map[string]string
	// Weights opens InitFrom; nil: safetensors, one file or a set, and checkpoints.
	Weights func(path string) (Weights, error)
	// Beside are small files by name that checkpoints hold too, so that other programs can read the weights: config.json, the tokenizer.
	Beside map[string][]byte

	CheckEvery int              // steps between comparisons of all state over ranks; 0: 500, -1: never
	Sinks      []telemetry.Sink // told of all events; the trainer closes them
	Trace      bool             // emit spans of what the engine waits for, for a telemetry.Trace among the sinks
	FLOPs      *telemetry.FLOPs // arithmetic of an item, for MFU; nil: what the plan's kernels do
	optimGroup []int            // by index in Groups: the first of its two in Optim.Groups
	PeakFLOPS  float64          // of this rank's device at its compute dtype, for MFU; 0: what the device says, or unknown
}

// Schedule makes the learning rate, given how long the run is. optim.ScheduleConfig.New needs both.
type Schedule func(totalSteps, stepsPerEpoch int) (optim.Schedule, error)

// ConstantLR is a schedule that never changes.
func ConstantLR(lr float64) Schedule {
	return func(total, _ int) (optim.Schedule, error) {
		return optim.ScheduleConfig{Shape: optim.Constant, Peak: lr, Total: total}.New()
	}
}

// ensureDefaults fills what was left zero.
func (c *Config) ensureDefaults() {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	if c.Name == "" {
		c.Name = "run"
	}
	def(&c.Accumulate, 1)
	def(&c.EvalBatch, c.Batch)
	def(&c.KeepLast, 2)
	def(&c.CheckEvery, 500)
	if c.Compute == npu.Invalid {
		c.Compute = npu.F32
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Minute
	}
	if c.LongWork == 0 {
		c.LongWork = time.Hour
	}
	if c.Comm != nil && c.LocalSize == 0 { // all on one machine
		c.LocalSize, c.LocalRank = c.Comm.Size(), c.Comm.Rank()
	}
	def(&c.LocalSize, 1)
	if c.Scaler == nil {
		none := optim.NoScaler(10)
		c.Scaler = &none
	}
}

// validate names every fault at once.
func (c *Config) validate() error {
	var errs []error
	need := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("train: "+format, a...))
		}
	}
	need(c.Model != nil, "no model\nhint: train.WithModel")
	need(c.Data != nil, "no training data\nhint: train.WithData")
	need(c.Batch > 0, "batch must be above 0, got %d", c.Batch)
	need(c.Accumulate > 0, "accumulation must be at least 1 micro-batch, got %d", c.Accumulate)
	need(c.Steps >= 0 && c.Epochs >= 0, "the length must not be negative, got %d steps and %g epochs", c.Steps, c.Epochs)
	need(c.Tail != data.Short, "the tail %q is for evaluation: in training it would leave ranks without samples\nhint: data.Drop or data.Pad", c.Tail)
	need(c.Timeout > 0, "the timeout of a collective must be above 0, got %v", c.Timeout)
	need(c.LongWork > 0, "the time for long work must be above 0, got %v", c.LongWork)
	need(c.Steps > 0 || c.Epochs > 0, "no length\nhint: train.WithSteps or train.WithEpochs")
	need(c.Schedule != nil, "no learning rate\nhint: train.WithLR or train.WithSchedule")
	need(c.Compute == npu.F32 || c.Compute == npu.BF16, "compute dtype must be f32 or bf16, got %v", c.Compute)
	need(c.ClipNorm >= 0, "the limit of the gradient norm must not be negative, got %g", c.ClipNorm)
	need(c.KeepLast >= 2, "keep at least 2 checkpoints, got %d: the newest may turn out to be torn", c.KeepLast)
	need(c.SaveEvery == 0 || c.SaveDir != "", "checkpoints are asked for, but no directory for them")
	c.checkGroups(need)
	if c.Optim.Rule == "" {
		need(false, "no optimizer\nhint: train.WithOptimizer(optim.Default(optim.SGD, 1e-4))")
	} else if err := c.Optim.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Data != nil && c.Eval != nil && c.Data.Classes() != nil && !sameLabels(c.Data.Classes(), c.Eval.Classes()) {
		need(false, "%s and %s do not have the same classes by label: %s\nhint: open the held-out samples with the classes of the training samples",
			c.Data.Name(), c.Eval.Name(), classChanges(c.Data.Classes(), c.Eval.Classes()))
	}
	if err := checkPatterns(c.InitIgnore); err != nil {
		errs = append(errs, err)
	}
	if err := c.Scaler.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
