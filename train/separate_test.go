package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/gotrain/gotrain/ddp/comm/staged"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/telemetry"
	"gorgonia.org/gorgonia"
)

// inMemory makes ref keep its memory from the host, or not.
func inMemory(memory string) Option {
	return func(c *Config) { c.Options = map[string]string{"memory": memory} }
}

// everything has what touches device memory from the host: batch statistics, dropout, accumulation, clipping, an evaluation, checkpoints, comparisons of
// state, a stop in the middle, and the rest after it.
func everything(t *testing.T, dir, memory string, more ...Option) func(int) []Option {
	return func(int) []Option {
		return append([]Option{WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 4), WithSteps(12), WithLR(0.02), WithDevice("ref", 1),
			WithOptimizer(optim.Default(optim.AdamW, 1e-3)), WithClipNorm(1), WithAccumulate(2), WithSeed(11), WithCheckpoints(dir, 4), inMemory(memory),
			func(c *Config) { c.CheckEvery, c.FirstMB, c.BucketMB = 2, 0.0005, 0.002 }}, more...)
	}
}

// A device whose memory the host cannot access computes the same bits, from its first step through a stop to its checkpoint. "strict" makes every reuse
// of host memory before its copy has run, and every copy of ordinary memory, an error.
func TestSeparateMemoryComputesTheSame(t *testing.T) {
	variants := map[string][]Option{
		"clipped":          nil,
		"bucket by bucket": {WithClipNorm(0), WithAccumulate(1), WithOptimizer(optim.Default(optim.SGD, 1e-3))},
		"lamb":             {WithClipNorm(1), WithOptimizer(optim.Default(optim.LAMB, 1e-3))},
		"lars":             {WithClipNorm(0), WithOptimizer(optim.Default(optim.LARS, 1e-3))},
		"bf16":             {WithCompute(npu.BF16)},
	}
	for name, more := range variants {
		for _, ranks := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/ranks=%d", name, ranks), func(t *testing.T) {
				dirs := map[string]string{"host": t.TempDir(), "strict": t.TempDir()}
				want := runRanks(t, ranks, everything(t, dirs["host"], "host", more...))
				got := runRanksStop(t, ranks, everything(t, dirs["strict"], "strict", more...), 5)
				got = append(got, runRanks(t, ranks, everything(t, dirs["strict"], "strict", more...))...)
				if len(got) != len(want) || len(want) != 12 {
					t.Fatalf("%d steps, want %d", len(got), len(want))
				}
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("step %d: loss %.17g, want %.17g", i+1, got[i], want[i])
					}
				}
				for _, file := range []string{"model.safetensors", "optimizer.safetensors"} {
					a, err1 := os.ReadFile(filepath.Join(dirs["host"], "step-00000012", file))
					b, err2 := os.ReadFile(filepath.Join(dirs["strict"], "step-00000012", file))
					if err := errors.Join(err1, err2); err != nil || string(a) != string(b) {
						t.Errorf("%s differs from that of the run in host memory: %v", file, err)
					}
				}
			})
		}
	}
}

// A step that waits for the second agreement has the same numbers too.
func TestSeparateMemoryWithHeldUpdates(t *testing.T) {
	hold := func(memory string) (losses, evals) {
		opts := everything(t, t.TempDir(), memory, WithClipNorm(0), WithAccumulate(1))(0)
		l, e, errs := ranksWith(t, 2, opts, func(tr *Trainer, _ int) { tr.holdAfter = -1 })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return l, e
	}
	want, wantEval := hold("host")
	got, gotEval := hold("strict")
	if len(want.v) != 12 || fmt.Sprint(want, wantEval) != fmt.Sprint(got, gotEval) {
		t.Errorf("losses %v, evaluations %v, want %v, %v", got, gotEval, want, wantEval)
	}
}

// waits counts the spans in which the host waited for the device before a reduction, and the reductions.
type waits struct {
	mu              sync.Mutex
	events, reduces int
}

func (w *waits) Emit(e telemetry.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := e.(telemetry.Span); ok {
		switch s.Cat {
		case "event":
			w.events++
		case "reduce":
			w.reduces++
		}
	}
	return nil
}
func (*waits) Close() error { return nil }

// With a transport that is ordered by events the host does not wait for a bucket's kernels. A transport of the host has to.
func TestHostDoesNotWaitForBuckets(t *testing.T) {
	for _, memory := range []string{"host", "separate", "strict"} {
		var w waits
		opts := everything(t, t.TempDir(), memory, WithClipNorm(0), func(c *Config) { c.Trace = true })
		_, errs := together(t, 2, func(rank int) []Option {
			if rank == 0 {
				return append(opts(0), WithSinks(&w))
			}
			return opts(rank)
		}, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if w.reduces < 24 {
			t.Fatalf("%s: only %d reductions: the test wants several a step", memory, w.reduces)
		}
		if host := memory == "host"; (w.events > 0) != host {
			t.Errorf("%s: the host waited for the device before %d of %d reductions", memory, w.events, w.reduces)
		}
	}
}

// What is not finite is found in device memory too.
func TestNonFiniteIsFoundInSeparateMemory(t *testing.T) {
	var said []string
	for _, memory := range []string{"host", "strict"} {
		_, errs := together(t, 1, func(int) []Option {
			return []Option{WithModel(mlp), WithData(poisoned{noise(t, 80), 37}, 4), WithSteps(50), WithLR(0.1),
				WithOptimizer(optim.Default(optim.SGD, 0)), WithDevice("ref", 1), inMemory(memory)}
		}, nil)
		said = append(said, fmt.Sprint(errs[0]))
	}
	if said[0] != said[1] || !strings.Contains(said[1], "first in ") {
		t.Errorf("in host memory: %s\nin device memory: %s", said[0], said[1])
	}
}

// An operation without a kernel is refused before the first step, by name, where it cannot work.
func TestHostStepNeedsHostMemory(t *testing.T) {
	model := func(b *graph.Builder, in Inputs) Outputs {
		x := b.GlobalAvgPool(in["image"])
		y, err := gorgonia.Softplus(x)
		if err != nil {
			t.Fatal(err)
		}
		logits := nn.Linear{Out: 4}.Apply(b, "fc", y)
		loss, n := b.CrossEntropy(logits, in["label"])
		return Outputs{Loss: loss, Count: n}
	}
	run := func(memory string) error {
		_, errs := together(t, 1, func(int) []Option {
			return []Option{WithModel(model), WithData(images(t, 50), 6), WithSteps(2), WithLR(0.02), WithDevice("ref", 1),
				WithOptimizer(optim.Default(optim.SGD, 0)), inMemory(memory), WithGraph(graph.AllowUnreached())}
		}, nil)
		return errs[0]
	}
	if err := run("host"); err != nil {
		t.Fatal(err)
	}
	err := run("separate")
	if err == nil || !strings.Contains(err.Error(), "softplus") || !strings.Contains(err.Error(), "hint: use operations that have kernels") {
		t.Error(err)
	}
}
