package train

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Option changes a Config. The fields of Config document meaning and defaults.
type Option func(*Config)

// WithConfig sets the whole Config; later options change it.
func WithConfig(c Config) Option { return func(d *Config) { *d = c } }

// WithName names the run.
func WithName(name string) Option { return func(c *Config) { c.Name = name } }

// WithModel sets the network.
func WithModel(m Model) Option { return func(c *Config) { c.Model = m } }

// WithData sets the training samples and the rows of a micro-batch on each rank.
func WithData(src data.Source, batch int) Option {
	return func(c *Config) { c.Data, c.Batch = src, batch }
}

// WithEval sets the held-out samples and the number of steps between evaluations (0: only at the end, -1: after every epoch).
func WithEval(src data.Source, every int) Option {
	return func(c *Config) { c.Eval, c.EvalEvery = src, every }
}

// WithSteps sets the length in optimizer steps.
func WithSteps(n int) Option { return func(c *Config) { c.Steps = n } }

// WithEpochs sets the length in passes over the training samples.
func WithEpochs(n float64) Option { return func(c *Config) { c.Epochs, c.Steps = n, 0 } }

// WithOptimizer sets the optimizer.
func WithOptimizer(o optim.Config) Option { return func(c *Config) { c.Optim = o } }

// WithGroups gives sets of parameters their own learning rate or decay, or freezes them.
func WithGroups(groups ...ParamGroup) Option { return func(c *Config) { c.Groups = groups } }

// WithLR sets a constant learning rate.
func WithLR(lr float64) Option { return WithSchedule(ConstantLR(lr)) }

// WithSchedule sets the learning-rate schedule.
func WithSchedule(s Schedule) Option { return func(c *Config) { c.Schedule = s } }

// WithClipNorm limits the global gradient norm.
func WithClipNorm(limit float64) Option { return func(c *Config) { c.ClipNorm = limit } }

// WithMemoryLimit limits the memory of a rank, in bytes: see Config.MemoryLimit.
func WithMemoryLimit(bytes int64) Option { return func(c *Config) { c.MemoryLimit = bytes } }

// WithAccumulate sets the number of micro-batches per step.
func WithAccumulate(n int) Option { return func(c *Config) { c.Accumulate = n } }

// WithCompute sets the dtype of activations.
func WithCompute(t npu.DType) Option { return func(c *Config) { c.Compute = t } }

// WithDevice sets the device family and the compute threads of this rank (0: all cores of this process).
func WithDevice(family string, threads int) Option {
	return func(c *Config) { c.Device, c.Threads = family, threads }
}

// WithComm joins this rank with others.
func WithComm(m comm.Communicator) Option { return func(c *Config) { c.Comm = m } }

// WithSeed sets the seed of weights, sample order and augmentation.
func WithSeed(s uint64) Option { return func(c *Config) { c.Seed = s } }

// WithCheckpoints saves to dir every n steps (0: only at the end and when stopped), and resumes from the newest checkpoint there, if any.
func WithCheckpoints(dir string, every int) Option {
	return func(c *Config) { c.SaveDir, c.SaveEvery, c.Resume = dir, every, true }
}

// WithSinks adds receivers of events, such as telemetry's console.
func WithSinks(s ...telemetry.Sink) Option {
	return func(c *Config) { c.Sinks = append(c.Sinks, s...) }
}

// WithOnStep calls f after every step, on the goroutine of the loop.
func WithOnStep(f func(ctx context.Context, v *StepView) error) Option {
	return func(c *Config) { c.OnStep = f }
}

// WithMonitor says which evaluation is the best: to keep its checkpoint, to stop early, to lower the learning rate.
func WithMonitor(m Monitor) Option { return func(c *Config) { c.Monitor = m } }

// WithNetwork names the family of the model and its configuration, which becomes JSON, so that checkpoints open with predict.Open and gotrain predict.
func WithNetwork(family string, config any) Option {
	return func(c *Config) {
		raw, err := json.Marshal(config)
		if err != nil {
			c.faults = append(c.faults, fmt.Errorf("train: the configuration of network %q: %w", family, err))
		}
		c.Network = &checkpoint.Network{Family: family, Config: raw}
	}
}

// WithInitFrom reads the initial weights from a file or a checkpoint. With partial, parameters that it lacks keep their initial values.
func WithInitFrom(path string, partial bool) Option {
	return func(c *Config) { c.InitFrom, c.InitPartial = path, partial }
}

// WithRecompute keeps only the outputs of each block of the model, and recomputes the rest in the backward pass.
func WithRecompute() Option { return func(c *Config) { c.Recompute = true } }

// WithCompress lets gradients travel as f16, bf16 or int8, from a step on: the first ones are better left alone. See package ddp/compress.
func WithCompress(codec string, from int) Option {
	return func(c *Config) { c.Compress.Codec, c.CodecFrom = codec, from }
}

// WithConvAlgorithm sets how convolutions are computed: AutoConv, DirectConv or WinogradConv.
func WithConvAlgorithm(name string) Option { return func(c *Config) { c.ConvAlgorithm = name } }

// WithGraph adds builder options to both networks: graph.AllowUnreached, graph.Salt.
func WithGraph(o ...graph.Option) Option {
	return func(c *Config) { c.Graph = append(c.Graph, o...) }
}
