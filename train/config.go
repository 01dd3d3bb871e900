package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/dirlock"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Config holds all settings of a run. Use it directly, or through the options of New. The comment of a field gives its default after the semicolon.
type Config struct {
	Name  string         // name of the run, for logs; "run"
	Model Model          // required
	Graph []graph.Option // options of both networks: graph.AllowUnreached, graph.Salt
	Seed  uint64         // seed of weights, sample order and augmentation

	Data data.Source // training samples; required
	Eval data.Source // held-out samples; nil: no evaluation

	// Network names the family of Model and its configuration, for the description in checkpoints from which package train/predict opens the network;
	// the trainer adds the rest. nil: a model of the program's own, which predict.WithModel passes.
	Network *checkpoint.Network

	Batch      int // rows of a micro-batch on each rank; required
	Accumulate int // micro-batches of a step; 1
	EvalBatch  int // rows of an evaluation batch; Batch

	Steps  int     // total optimizer steps; 0: Epochs decides
	Epochs float64 // total passes over Data; used if Steps is 0

	Optim  optim.Config
	Groups []ParamGroup // parameters with their own learning rate or decay, or frozen; see ParamGroup
	// LayerDecay multiplies the learning rate of each layer by this factor for every layer behind it, so that layers near the input learn slowly; 0 or 1: not.
	LayerDecay float64
	Schedule   Schedule
	Monitor    Monitor             // which evaluation is the best, and what follows from it; see Monitor
	ClipNorm   float64             // limit of the global gradient norm; 0: none
	Scaler     *optim.ScalerConfig // loss scaling; nil: optim.DefaultScaler for f16, none for f32 and bf16, which need none

	// Recompute keeps only the outputs of each block of the model and recomputes the rest in the backward pass: less memory, more time, the same
	// numbers.
	Recompute bool
	// ConvAlgorithm is AutoConv, DirectConv or WinogradConv: how convolutions are computed where the device has several algorithms. AutoConv: the fastest
	// by a measurement, which is made once a machine. Rank 0 decides; a checkpoint keeps the choice, and a run that resumes follows it. WinogradConv:
	// wherever the device has it. DirectConv: nowhere else. AutoConv
	ConvAlgorithm string
	// MemoryLimit is how much memory a rank may take in bytes, of what Summarise totals; 0: no limit. Where it is too small for all activations, results of
	// the forward pass that are cheap to make (norms, SwiGLU, conversions) are recomputed in the backward pass, as few as it takes: the same numbers.
	MemoryLimit int64

	Device   string            // device family: "npu", "cpu", "ref"; "": the best that this machine has, with a warning if that cannot be opened
	Compute  npu.DType         // dtype of activations: F32, or BF16 or F16 on a device that lists it; F32
	Threads  int               // compute threads of this rank; 0: cores of this process / ranks on this machine
	CPUs     []int             // processors to bind compute threads to
	Options  map[string]string // of the device, which documents them
	BucketMB float64           // maximum size of a gradient bucket in MiB; 25
	FirstMB  float64           // maximum size of the first bucket in MiB; 1
	LastMB   float64           // maximum size of the last bucket in MiB; FirstMB
	// BucketAuto chooses the three sizes for the times of kernels and the measured link of the job. Rank 0 decides; a checkpoint keeps the choice.
	BucketAuto bool
	Compress   Compress  // how gradients travel between ranks; as float32
	Codec      ddp.Codec // makes gradients smaller on the wire, see package ddp/compress; nil: they travel as they are. One rank does not use it
	// CodecFrom is how many steps of training come before the first one that uses Codec.
	CodecFrom int

	Comm      comm.Communicator // joins the ranks through host memory; nil: this process is alone. It carries gradients too, where the host has them
	LocalRank int               // index on this machine; Comm.Rank() if LocalSize is 0
	LocalSize int               // ranks on this machine; Comm.Size()
	Node      int               // index of this machine, for log lines
	Timeout   time.Duration     // how long a collective waits for a rank that shows no sign of life; 5 minutes
	LongWork  time.Duration     // how long it waits for a rank that reads or writes a checkpoint, or is still starting; 1 hour
	// Transport holds options of the transport that moves gradients, where the device has memory of its own (comm.ForDevice).
	Transport map[string]string
	Same      []comm.Item // further values that all ranks must agree on, such as a hash of the recipe

	Workers     int          // data goroutines; 0: automatic
	Tail        data.Tail    // what to do with the incomplete last batch of a training epoch
	Repeat      int          // how often each sample comes in an epoch, augmented anew (data.Sampler.Repeat); 0 means 1
	Balance     *data.Groups // classes to draw equally often; nil: every sample once an epoch
	SkipBad     int          // unreadable samples to tolerate before the run fails
	NoShuffle   bool
	EvalEvery   int           // steps between evaluations; 0: only after the last step, -n: after every n epochs
	SaveEvery   int           // steps between checkpoints; 0: only at the end and when stopped, -n: after every n epochs
	SaveDir     string        // directory of checkpoints; rank 0 owns it during Run, or Run fails with a *dirlock.BusyError
	Lock        *dirlock.Lock // lock of a folder that the caller owns; if it covers SaveDir, Run does not lock it again
	KeepLast    int           // checkpoints to keep; 2
	Resume      bool          // resume from the newest good checkpoint in SaveDir, if any
	ResumeFrom  string        // a checkpoint directory, or a directory of checkpoints; it must exist
	InitFrom    string        // where to read initial weights: a safetensors file, a checkpoint, or what Weights opens
	InitPartial bool          // parameters that InitFrom lacks, or has in another shape, keep their initial values (a new classifier)
	// InitIgnore lists patterns, such as "fc.*" or "*", of tensors that InitFrom and a checkpoint may hold although the model lacks them. Any other such
	// tensor is an error: the file is most likely for another model.
	InitIgnore []string
	// Recognise guesses from tensor names which model they belong to, for the error message when they do not fit; nil: no guess.
	Recognise  func(names []string) string
	RecipeText string // stored in checkpoints
	// Settings are the settings that affect results, by name. Checkpoints store them, and a resumed run reports those that changed. nil: the trainer's
	// own, in one line.
	Settings map[string]string
	// Adapt says how a parameter of InitFrom with another shape becomes one of the model, such as learned positions for pictures of another size; it returns
	// nil for those that cannot. nil: shapes must be equal.
	Adapt func(param string, has, want npu.Shape) func(values []float32) []float32
	// Weights opens InitFrom; nil: safetensors, one file or a set, and checkpoints.
	Weights func(path string) (Weights, error)
	// Beside holds small files, by name, to store in checkpoints so that other programs can read the weights: config.json, the tokenizer.
	Beside map[string][]byte

	CheckEvery int              // steps between checks that all ranks hold the same state; 0: 500, -1: never
	Sinks      []telemetry.Sink // receive all events; the trainer closes them
	// OnStep is called after every step, on the goroutine of the loop: to look at weights, to save, to stop. Its error ends the run. nil: nothing is called
	OnStep     func(ctx context.Context, v *StepView) error
	Trace      bool             // emit spans of what the engine waits for, for a telemetry.Trace sink
	FLOPs      *telemetry.FLOPs // arithmetic per item, for MFU; nil: counted from the plan's kernels
	opened     func(*Trainer)   // test hook, called by New
	faults     []error          // of options
	layerGroup map[[2]int]int   // by optimizer group and layer: the optimizer group of both
	optimGroup []int            // by index in Groups: the first of its two groups in Optim.Groups
	PeakFLOPS  float64          // peak of this rank's device at its compute dtype, for MFU; 0: as the device reports, or unknown
}

// Schedule makes the learning-rate schedule, given the length of the run. optim.ScheduleConfig.New needs both arguments.
type Schedule func(totalSteps, stepsPerEpoch int) (optim.Schedule, error)

// ConstantLR is a schedule with a constant learning rate.
func ConstantLR(lr float64) Schedule {
	return func(total, _ int) (optim.Schedule, error) {
		return optim.ScheduleConfig{Shape: optim.Constant, Peak: lr, Total: total}.New()
	}
}

// ensureDefaults replaces zero values by their defaults.
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
	if c.ConvAlgorithm == "" {
		c.ConvAlgorithm = AutoConv
	}
	if c.Compute == npu.Invalid {
		c.Compute = npu.F32
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Minute
	}
	if c.LongWork == 0 {
		c.LongWork = time.Hour
	}
	if c.Comm != nil && c.LocalSize == 0 { // all ranks on one machine
		c.LocalSize, c.LocalRank = c.Comm.Size(), c.Comm.Rank()
	}
	def(&c.LocalSize, 1)
	if c.Scaler == nil {
		s := optim.NoScaler(10)
		if c.Compute == npu.F16 {
			s = optim.DefaultScaler()
		}
		c.Scaler = &s
	}
}

// computes are the dtypes that activations may have.
var computes = []npu.DType{npu.F32, npu.BF16, npu.F16}

// scales reports whether the loss is scaled: gradients are then measured in every step, and a step that overflows is skipped. f16 is always watched,
// whatever the scale: its largest number is 65504.
func (c *Config) scales() bool { return c.Compute == npu.F16 || c.Scaler.Dynamic || c.Scaler.Init != 1 }

// validate reports all faults at once.
func (c *Config) validate() error {
	errs := slices.Clone(c.faults)
	need := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("train: "+format, a...))
		}
	}
	need(c.Model != nil, "no model\nhint: use train.WithModel")
	need(c.Data != nil, "no training data\nhint: use train.WithData")
	need(c.Batch > 0, "the batch must be greater than 0, got %d", c.Batch)
	need(c.Accumulate > 0, "accumulation must be at least 1 micro-batch per step, got %d", c.Accumulate)
	need(c.Steps >= 0 && c.Epochs >= 0, "the length of the run must not be negative, got %d steps and %g epochs", c.Steps, c.Epochs)
	need(c.Tail != data.Short, "the tail %q is for evaluation only: in training it would leave ranks without samples\nhint: use data.Drop or data.Pad", c.Tail)
	need(c.Timeout > 0, "the timeout of a collective must be greater than 0, got %v", c.Timeout)
	need(c.LongWork > 0, "the time for long work must be greater than 0, got %v", c.LongWork)
	need(c.Steps > 0 || c.Epochs > 0, "no length of the run\nhint: use train.WithSteps or train.WithEpochs")
	need(c.Schedule != nil, "no learning rate\nhint: use train.WithLR or train.WithSchedule")
	need(slices.Contains(computes, c.Compute), "the compute dtype must be f32, bf16 or f16, got %v", c.Compute)
	need(c.MemoryLimit >= 0, "the limit of memory must not be negative, got %d bytes", c.MemoryLimit)
	need(c.ClipNorm >= 0, "the limit of the gradient norm must not be negative, got %g", c.ClipNorm)
	need(c.KeepLast >= 2, "keep at least 2 checkpoints, got %d: the newest may turn out to be damaged", c.KeepLast)
	need(c.SaveEvery == 0 || c.SaveDir != "", "checkpoints are enabled, but their directory is not set\nhint: use train.WithCheckpoints")
	c.checkGroups(need)
	c.checkMonitor(need)
	c.checkLayers(need)
	c.checkCompress(need)
	c.checkConvAlgorithm(need)
	if c.Optim.Rule == "" {
		need(false, "no optimizer\nhint: use train.WithOptimizer(optim.Default(optim.SGD, 1e-4))")
	} else if err := c.Optim.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Data != nil && c.Eval != nil && c.Data.Classes() != nil && !sameLabels(c.Data.Classes(), c.Eval.Classes()) {
		need(false, "%s and %s have different classes: %s\nhint: open the held-out samples with the classes of the training samples",
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
