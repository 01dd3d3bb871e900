package assemble

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
)

// Rank describes the process that the configuration is for.
type Rank struct {
	launch.Identity
	launch.Placement
	Comm comm.Communicator // nil if World is 1, or if only the plan is needed
}

// Config returns the configuration of one rank, without sinks. It opens the data sets, until ctx ends; an error about them has exit code 66.
func Config(ctx context.Context, r *recipes.Recipe, rank Rank) (train.Config, error) {
	trainSet, evalSet, err := Data(ctx, r, rank)
	if err != nil {
		return train.Config{}, coded(launch.ExitNoInput, err)
	}
	full := data.Sampler{Len: trainSet.Len(), World: max(1, rank.World), Batch: r.Train.Batch, Repeat: r.Data.Repeats}
	if full.Tail, err = data.ParseTail(r.Data.Tail); err == nil {
		err = full.Check() // report before ranks connect
	}
	if err != nil {
		return train.Config{}, launch.WithCode(launch.ExitRecipe, fmt.Errorf("train.batch_per_rank: %w", err))
	}
	c, err := config(r, rank, trainSet, evalSet)
	if err != nil {
		return c, err
	}
	c.Repeat = r.Data.Repeats
	if c.Balance, err = classGroups(r, trainSet); err != nil {
		return c, launch.WithCode(launch.ExitNoInput, err)
	}
	return c, checkpoints(r, rank, &c)
}

// Trained is a checkpoint to evaluate.
type Trained struct {
	Path    string   // its folder
	Classes []string // the classes it was trained on; nil: unknown
}

// EvalConfig is Config for train.Trainer.Evaluate: only the held-out samples, labelled by the classes of the checkpoint, which are matched by name. It
// needs no training samples, and nothing is saved.
func EvalConfig(ctx context.Context, r *recipes.Recipe, rank Rank, from Trained) (train.Config, error) {
	held, err := heldOut(ctx, r, from.Classes, rank)
	if err != nil {
		return train.Config{}, coded(launch.ExitNoInput, err)
	}
	plain := *r // weights of classes are for training, and balanced ones come from its samples
	plain.Model.ClassWeights, plain.Model.ClassWeighting = nil, "none"
	c, err := config(&plain, rank, held, held)
	c.RecipeText, c.Settings = portable(r), r.Settings()
	c.InitFrom, c.InitPartial = from.Path, false
	c.Monitor = train.Monitor{} // which acts on a training only
	return c, err
}

// same lists what ranks must agree on, key by key, so that the one that differs can be named.
func same(r *recipes.Recipe) (items []comm.Item) {
	for _, s := range r.Common() {
		items = append(items, comm.Item{Name: s[0], Text: s[1]})
	}
	return items
}

// config is the part common to both.
func config(r *recipes.Recipe, rank Rank, trainSet, evalSet data.Source) (train.Config, error) {
	var c train.Config
	model, err := Model(r, trainSet)
	if err != nil {
		return c, coded(launch.ExitRecipe, err)
	}
	dtype, err := npu.ParseDType(r.Train.DType)
	if err != nil {
		return c, launch.WithCode(launch.ExitRecipe, err)
	}
	tail, err := data.ParseTail(r.Data.Tail)
	if err != nil {
		return c, launch.WithCode(launch.ExitRecipe, err)
	}
	world := max(1, rank.World)
	scaler := Scaler(r)
	c = train.Config{
		Name: r.Run.Name, Model: model, Seed: r.Run.Seed, Data: trainSet, Eval: evalSet,
		Batch: r.Train.Batch, Accumulate: r.Train.Accumulate, EvalBatch: r.Eval.Batch,
		Steps: r.Run.Steps, Epochs: r.Run.Epochs,
		Optim: Optimizer(r), Schedule: Schedule(r, r.GlobalBatch(world), rank.Rank), ClipNorm: r.Train.ClipNorm, Scaler: &scaler,
		Compute: dtype, Threads: r.Train.Threads, CPUs: rank.CPUs,
		Compress: train.Compress{Codec: r.Comm.Compress, Block: r.Comm.CompressBlock, NoFeedback: !r.Comm.ErrorFeedback}, CodecFrom: r.Comm.CompressAfter,
		Comm: rank.Comm, LocalRank: rank.LocalRank, LocalSize: max(1, rank.LocalWorld), Node: max(0, rank.NodeRank),
		Timeout:  time.Duration(r.Train.TimeoutSeconds * float64(time.Second)),
		LongWork: time.Duration(r.Train.LongWorkSeconds * float64(time.Second)),
		Same:     same(r),
		Workers:  r.Data.Workers, Tail: tail, NoShuffle: !r.Data.Shuffle,
		EvalEvery: every(r.Eval.EveryEpochs, r.Eval.EverySteps),
		KeepLast:  r.Checkpoint.KeepLast, InitFrom: r.Model.InitFrom, InitPartial: r.Model.InitPartial, InitIgnore: strings.Fields(r.Model.InitIgnore),
		RecipeText: portable(r), Settings: r.Settings(),
		Recognise: models.Recognise, Recompute: r.Train.Recompute == "layer", ConvAlgorithm: r.Train.ConvAlgorithm,
		MemoryLimit: int64(r.Train.MemoryLimitMB * (1 << 20)), CheckEvery: r.Train.CheckEvery, Trace: r.Log.Trace, PeakFLOPS: r.Log.PeakTFLOPS * 1e12,
	}
	if f, ok := models.Find(r.Model.Name); ok {
		c.Adapt = f.Adapt
	}
	c.Groups, c.LayerDecay = groups(r), r.Optim.LayerDecay
	if r.Eval.Enabled {
		c.Monitor = monitor(r)
	}
	if c.BucketAuto = r.Train.BucketMB == recipes.Auto; !c.BucketAuto {
		c.BucketMB, c.FirstMB = float64(r.Train.BucketMB), r.Train.FirstBucketMB
	}
	if c.Threads == 0 {
		c.Threads = rank.Threads
	}
	if c.Options, c.Transport, err = options(r.Train); err != nil {
		return c, launch.WithCode(launch.ExitRecipe, err)
	}
	if r.Train.Device != "auto" {
		c.Device = r.Train.Device
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = -1
	}
	if r.Data.BadFiles == "skip" {
		c.SkipBad = r.Data.BadFileLimit
	}
	if at, err := weightsPath(r); err == nil && c.InitFrom != "" {
		c.InitFrom = at
	}
	if c.Network, err = networkOf(r, trainSet, evalSet); err != nil {
		return c, coded(launch.ExitRecipe, err)
	}
	if f, err := familyOf(r); err == nil && f.configure != nil {
		if err := f.configure(r, &c); err != nil {
			return c, coded(launch.ExitRecipe, err)
		}
	}
	return c, nil
}

// coded gives an error an exit code, unless it already has a more specific one.
func coded(code int, err error) error {
	if launch.ExitCode(err) != launch.ExitTraining {
		return err
	}
	return launch.WithCode(code, err)
}

func checkpoints(r *recipes.Recipe, rank Rank, c *train.Config) error {
	if r.Checkpoint.Enabled {
		c.SaveDir = r.Checkpoint.Dir
		c.SaveEvery = every(r.Checkpoint.EveryEpochs, r.Checkpoint.EverySteps)
	}
	switch r.Checkpoint.Resume {
	case "auto":
		c.Resume = r.Checkpoint.Enabled
	case "none":
	case "best":
		c.ResumeFrom = filepath.Join(r.Checkpoint.Dir, "best")
		if rank.Rank > 0 { // rank 0 reads it; others need not see its files
			break
		}
		name, err := checkpoint.New(checkpoint.OS{}, r.Checkpoint.Dir, 0).Best()
		if err == nil && name == "" {
			err = fmt.Errorf("checkpoint.resume = \"best\": %s has no best checkpoint\n"+
				"hint: train with checkpoint.keep_best = true, or name a checkpoint", r.Checkpoint.Dir)
		}
		if err != nil {
			return launch.WithCode(launch.ExitNoInput, err)
		}
	default:
		c.ResumeFrom = r.Checkpoint.Resume
	}
	return nil
}

// every converts an interval in epochs or steps to the trainer's form: steps, or epochs as a negative number; 0 means never.
func every(epochs, steps int) int {
	if epochs > 0 {
		return -epochs
	}
	return steps
}

// Scaler returns the loss scaling: none for a dtype that does not need it.
func Scaler(r *recipes.Recipe) optim.ScalerConfig {
	t := &r.Train
	switch {
	case t.DType != npu.F16.String():
		return optim.NoScaler(t.MaxBadSteps)
	case t.LossScale > 0:
		return optim.ScalerConfig{Init: t.LossScale, MaxSkips: t.MaxBadSteps}
	}
	c := optim.DefaultScaler()
	c.Init, c.Interval, c.Growth, c.Backoff, c.Floor, c.MaxSkips = t.ScaleInit, t.ScaleInterval, t.ScaleGrowth, t.ScaleBackoff, t.ScaleMin, t.MaxBadSteps
	c.Ceiling = max(c.Ceiling, c.Init)
	return c
}

// Optimizer returns the optimizer's configuration.
func Optimizer(r *recipes.Recipe) optim.Config {
	o := r.Optim
	c := optim.Default(o.Name, o.WeightDecay)
	// All hyperparameters, whatever the rule: each uses its own, and optim rejects an unknown rule.
	c.Momentum, c.Nesterov, c.Dampening, c.Decoupled = o.Momentum, o.Nesterov, o.Dampening, o.DecoupledDecay
	c.EMA = optim.EMA{Decay: o.EMADecay, Warmup: o.EMAWarmup}
	c.Beta1, c.Beta2, c.Eps, c.Trust = o.Beta1, o.Beta2, o.Eps, o.Trust
	c.TrustClip, c.AlwaysAdapt = o.TrustClip, o.AlwaysAdapt
	if !o.NoDecayNormBias {
		c.Groups[optim.NoDecay].WeightDecay = o.WeightDecay
		c.Groups[optim.NoDecay].NoAdapt = false
	}
	return c
}

// Schedule returns the learning rate over time for a global batch. Rank 0 warns if the run ends during warm-up.
func Schedule(r *recipes.Recipe, globalBatch, rank int) train.Schedule {
	s := r.Schedule
	return func(total, perEpoch int) (optim.Schedule, error) {
		steps := func(epochs float64) int { return int(math.Round(epochs * float64(perEpoch))) }
		shape := s.Kind
		if shape == "plateau" {
			shape = optim.Constant // train.Monitor lowers it
		}
		c := optim.ScheduleConfig{
			Shape: shape, Peak: r.Optim.PeakLR(globalBatch), Warmup: s.WarmupSteps, Total: total, MinRatio: s.MinLRRatio,
			Milestones: s.MilestonesSteps, Gamma: s.Gamma,
		}
		if s.WarmupEpochs > 0 {
			c.Warmup = steps(s.WarmupEpochs)
		}
		for _, e := range s.MilestonesEpochs {
			c.Milestones = append(c.Milestones, steps(e))
		}
		if c.Warmup >= total && (s.WarmupEpochs > 0) == (r.Run.Steps > 0) { // with equal units, the recipe's own check has already warned
			slog.Log(
				context.Background(),
				severity(rank),
				"the run ends during warm-up: the learning rate never reaches its peak",
				"steps",
				total,
				"warmup_steps",
				c.Warmup,
			)
		}
		if c.Warmup >= total {
			// The run ends during warm-up (a quick try of a long recipe), so the shape after it does not matter.
			c.Shape = optim.Constant
		}
		if c.Shape == optim.WSD {
			c.Decay = min(max(1, int(s.DecayFraction*float64(total))), total-c.Warmup)
		}
		out, err := c.New()
		return out, launch.WithCode(launch.ExitRecipe, err)
	}
}
