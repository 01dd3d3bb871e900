package assemble

import (
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
)

// Keys that a recipe sets reach the trainer.
func TestKeysReachTheTrainer(t *testing.T) {
	cfg := func(sets ...string) train.Config {
		t.Helper()
		c, err := Config(t.Context(), recipe(t, "quickstart", sets...), rank(1))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for set, reached := range map[string]func(c train.Config) bool{
		"run.name=x":                           func(c train.Config) bool { return c.Name == "x" },
		"run.seed=77":                          func(c train.Config) bool { return c.Seed == 77 },
		"train.accumulate_steps=3":             func(c train.Config) bool { return c.Accumulate == 3 },
		"train.dtype=bf16":                     func(c train.Config) bool { return c.Compute == npu.BF16 },
		"train.device=ref":                     func(c train.Config) bool { return c.Device == "ref" },
		"train.threads_per_rank=7":             func(c train.Config) bool { return c.Threads == 7 },
		"train.clip_norm=2.5":                  func(c train.Config) bool { return c.ClipNorm == 2.5 },
		"train.bucket_mb=3":                    func(c train.Config) bool { return c.BucketMB == 3 },
		"train.bucket_mb=auto":                 func(c train.Config) bool { return c.BucketAuto && c.BucketMB == 0 && c.FirstMB == 0 },
		"train.first_bucket_mb=0.5":            func(c train.Config) bool { return c.FirstMB == 0.5 },
		"train.max_bad_steps=4":                func(c train.Config) bool { return c.Scaler.MaxSkips == 4 },
		"train.collective_timeout_seconds=9":   func(c train.Config) bool { return c.Timeout == 9*time.Second },
		"train.state_check_every_steps=0":      func(c train.Config) bool { return c.CheckEvery == -1 },
		"data.shuffle=false":                   func(c train.Config) bool { return c.NoShuffle },
		"data.tail=pad":                        func(c train.Config) bool { return c.Tail == data.Pad },
		"data.repeats=3":                       func(c train.Config) bool { return c.Repeat == 3 },
		"data.balanced=true":                   func(c train.Config) bool { return c.Balance != nil },
		"data.mixup=0.2":                       func(c train.Config) bool { return len(c.Data.Fields()) == 3 && len(c.Eval.Fields()) == 2 },
		"data.workers_per_rank=5":              func(c train.Config) bool { return c.Workers == 5 },
		"data.bad_files=skip":                  func(c train.Config) bool { return c.SkipBad == 100 },
		"eval.enabled=false":                   func(c train.Config) bool { return c.Eval == nil },
		"eval.batch_per_rank=13":               func(c train.Config) bool { return c.EvalBatch == 13 },
		"checkpoint.keep_last=6":               func(c train.Config) bool { return c.KeepLast == 6 },
		"checkpoint.dir=/somewhere":            func(c train.Config) bool { return c.SaveDir == "/somewhere" },
		"checkpoint.resume=none":               func(c train.Config) bool { return !c.Resume && c.ResumeFrom == "" },
		"checkpoint.resume=/from/there":        func(c train.Config) bool { return c.ResumeFrom == "/from/there" },
		"log.trace=true":                       func(c train.Config) bool { return c.Trace },
		"log.peak_tflops=2":                    func(c train.Config) bool { return c.PeakFLOPS == 2e12 },
		"model.init_from=/weights.safetensors": func(c train.Config) bool { return c.InitFrom == "/weights.safetensors" },
		"optim.momentum=0.5":                   func(c train.Config) bool { return c.Optim.Momentum == 0.5 },
	} {
		if reached(cfg()) {
			t.Errorf("%s: the default is the same", set)
		}
		sets := []string{set}
		if set == "eval.enabled=false" {
			sets = append(sets, "eval.every_epochs=0", "eval.every_steps=0")
		}
		if set == "data.mixup=0.2" {
			sets = append(sets, "train.batch_per_rank=24")
		}
		if set == "optim.momentum=0.5" {
			sets = append(sets, "optim.name=sgd")
		}
		if !reached(cfg(sets...)) {
			t.Errorf("%s does not reach the trainer", set)
		}
	}
}

// The keys of loss scaling reach the trainer with f16, and only then.
func TestLossScaleReachesTheTrainer(t *testing.T) {
	dynamic := []string{"train.loss_scale_init=4096", "train.loss_scale_growth_interval=7", "train.loss_scale_growth_factor=4",
		"train.loss_scale_backoff_factor=0.25", "train.loss_scale_min=2", "train.max_bad_steps=6"}
	for _, c := range []struct {
		sets []string
		want optim.ScalerConfig
	}{
		{[]string{"train.dtype=f16"}, optim.DefaultScaler()},
		{append([]string{"train.dtype=f16"}, dynamic...), optim.ScalerConfig{
			Dynamic: true, Init: 4096, Growth: 4, Backoff: 0.25, Interval: 7, Floor: 2, Ceiling: 1 << 32, Hysteresis: 1, MaxSkips: 6,
		}},
		{[]string{"train.dtype=f16", "train.loss_scale_init=1e12"}, func() optim.ScalerConfig {
			s := optim.DefaultScaler()
			s.Init, s.Ceiling = 1e12, 1e12
			return s
		}()},
		{[]string{"train.dtype=f16", "train.loss_scale=512"}, optim.ScalerConfig{Init: 512, MaxSkips: 50}},
		{[]string{"train.dtype=bf16", "train.loss_scale=512"}, optim.NoScaler(10)},
		{dynamic, optim.NoScaler(6)},
	} {
		cfg, err := Config(t.Context(), recipe(t, "quickstart", c.sets...), rank(1))
		if err != nil {
			t.Fatal(err)
		}
		if *cfg.Scaler != c.want {
			t.Errorf("%v: %+v, want %+v", c.sets, *cfg.Scaler, c.want)
		}
		if err := cfg.Scaler.Validate(); err != nil {
			t.Errorf("%v: %v", c.sets, err)
		}
	}
}
