package assemble

import (
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
)

// Keys that a recipe sets reach the trainer.
func TestKeysReachTheTrainer(t *testing.T) {
	cfg := func(sets ...string) train.Config {
		t.Helper()
		c, err := Config(recipe(t, "quickstart", sets...), rank(1))
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
		"train.first_bucket_mb=0.5":            func(c train.Config) bool { return c.FirstMB == 0.5 },
		"train.max_bad_steps=4":                func(c train.Config) bool { return c.Scaler.MaxSkips == 4 },
		"train.collective_timeout_seconds=9":   func(c train.Config) bool { return c.Timeout == 9*time.Second },
		"train.state_check_every_steps=0":      func(c train.Config) bool { return c.CheckEvery == -1 },
		"data.shuffle=false":                   func(c train.Config) bool { return c.NoShuffle },
		"data.tail=pad":                        func(c train.Config) bool { return c.Tail == data.Pad },
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
		if set == "optim.momentum=0.5" {
			sets = append(sets, "optim.name=sgd")
		}
		if !reached(cfg(sets...)) {
			t.Errorf("%s does not reach the trainer", set)
		}
	}
}
