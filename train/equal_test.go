package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/telemetry"
)

// losses records the loss of each step.
type losses struct{ v []float64 }

func (l *losses) Emit(e telemetry.Event) error {
	if s, ok := e.(telemetry.Step); ok {
		l.v = append(l.v, s.Loss.X)
	}
	return nil
}
func (l *losses) Close() error { return nil }

// convnet has everything that makes equality hard except batch statistics, which differ by design between divisions of a batch: convolution, bias, a
// weight used twice.
func convnet(b *graph.Builder, in Inputs) Outputs {
	x := nn.Conv2D{Out: 8, Kernel: 3, Pad: 1, Bias: true}.Apply(b, "conv1", in["image"])
	x = b.Relu(x)
	x = nn.Conv2D{Out: 8, Kernel: 3, Stride: 2, Pad: 1, Bias: true}.Apply(b, "conv2", x)
	x = b.Relu(x)
	x = b.GlobalAvgPool(x)
	w := b.Param("tied", []int{8, 8}, graph.KaimingNormal(graph.FanIn))
	x = b.Relu(b.Linear(x, w, nil))
	x = b.Linear(x, w, nil)
	logits := nn.Linear{Out: 4}.Apply(b, "fc", x)
	loss, n := b.CrossEntropy(logits, in["label"])
	return Outputs{Loss: loss, Count: n}
}

func images(t testing.TB, n int) data.Source {
	src, err := data.NewSynthetic(3, n, 4, 2, 8, 8)
	if err != nil {
		t.Fatal(err)
	}
	return tinted{src}
}

// tinted adds a class-specific value to each channel, so that a small network learns the classes in a few steps.
type tinted struct{ data.Source }

func (s tinted) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	err := s.Source.Load(ctx, r, i, dst)
	label := data.I32(dst[1])[0]
	for j, v := range data.F32(dst[0]) {
		tint := label & 1
		if j >= 64 {
			tint = label >> 1
		}
		data.F32(dst[0])[j] = v + float32(2*tint-1)
	}
	return err
}

// runRanks trains on several ranks in this process and returns the losses of rank 0.
func runRanks(t testing.TB, ranks int, opts func(rank int) []Option) []float64 {
	t.Helper()
	return runRanksStop(t, ranks, opts, 0)
}

// resumesAlike requires that a run with a checkpoint each 4 steps, stopped after step stopAt and resumed, has the losses of one that never stopped, bit by bit.
// opts makes the options anew for each run.
func resumesAlike(t *testing.T, ranks, stopAt int, opts func() []Option) {
	t.Helper()
	dir := t.TempDir()
	saved := func(int) []Option { return append(opts(), WithCheckpoints(dir, 4)) }
	want := runRanks(t, ranks, func(int) []Option { return opts() })
	if got := append(runRanksStop(t, ranks, saved, stopAt), runRanks(t, ranks, saved)...); !slices.Equal(got, want) {
		t.Errorf("%d ranks, stopped after step %d and resumed: %v, want %v", ranks, stopAt, got, want)
	}
}

// runRanksStop is runRanks with a request to stop, on the last rank, after step stopAt.
func runRanksStop(t testing.TB, ranks int, opts func(rank int) []Option, stopAt int) []float64 {
	t.Helper()
	comms := []comm.Communicator{nil}
	if ranks > 1 {
		var err error
		if comms, err = shm.NewLocal(ranks); err != nil {
			t.Fatal(err)
		}
	}
	out := make([]losses, ranks)
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			tr, err := New(append(opts(r), WithComm(comms[r]), WithSinks(&out[r]))...)
			if err == nil {
				tr.afterStep = func(step int) {
					if step == stopAt && r == ranks-1 {
						tr.Stop()
					}
				}
				_, err = tr.Run(context.Background())
			}
			errs[r] = err
		})
	}
	wg.Wait()
	for _, c := range comms {
		if c != nil {
			c.Close()
		}
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	return out[0].v
}

func division(t testing.TB, src data.Source, ranks, accumulate int, bucketMB float64) []Option {
	return []Option{
		WithModel(convnet), WithData(src, 16/(ranks*accumulate)), WithAccumulate(accumulate), WithSteps(12), WithLR(0.1), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.SGD, 1e-3)), WithSeed(7),
		func(c *Config) { c.BucketMB, c.FirstMB = bucketMB, min(bucketMB, 0.0005) },
	}
}

// The loss does not depend on how a global batch is divided. The bound: float32 sums of 16 rows in another order, grown over 12 steps.
const divisionBound = 2e-5

func TestLossIsTheSameForEveryDivision(t *testing.T) {
	src := images(t, 96) // whole batches, because the rest at the end of an epoch depends on the micro-batch, not on the step
	want := runRanks(t, 1, func(int) []Option { return division(t, src, 1, 1, 25) })
	if len(want) != 12 || want[11] > want[0]-0.2 {
		t.Fatalf("the reference does not learn: %v", want)
	}
	for _, ranks := range []int{1, 2, 4} {
		for _, acc := range []int{1, 2, 4} {
			for _, mb := range []float64{0.0005, 0.002, 25} {
				t.Run(fmt.Sprintf("ranks=%d/accumulate=%d/bucket=%gMiB", ranks, acc, mb), func(t *testing.T) {
					opts := func(int) []Option { return division(t, src, ranks, acc, mb) }
					got := runRanks(t, ranks, opts)
					for i := range want {
						if d := math.Abs(got[i] - want[i]); !(d <= divisionBound) {
							t.Errorf("step %d: loss %.9g, want %.9g", i+1, got[i], want[i])
						}
					}
					for i, again := range runRanks(t, ranks, opts) {
						if again != got[i] {
							t.Errorf("step %d: a repeat gives %.17g, not %.17g", i+1, again, got[i])
						}
					}
				})
			}
		}
	}
}

// bnNet has running statistics and dropout.
func bnNet(b *graph.Builder, in Inputs) Outputs {
	x := nn.Conv2D{Out: 8, Kernel: 3, Pad: 1}.Apply(b, "conv1", in["image"])
	x = b.Relu(nn.BatchNorm{}.Apply(b, "bn1", x))
	x = b.Dropout(b.GlobalAvgPool(x), 0.2)
	logits := nn.Linear{Out: 4}.Apply(b, "fc", x)
	loss, n := b.CrossEntropy(logits, in["label"])
	return Outputs{Loss: loss, Count: n, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
}

func TestStoppedAndResumedIsBitEqual(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		for _, rule := range []string{optim.SGD, optim.AdamW} {
			for _, stopAt := range []int{1, 5, 9} {
				t.Run(fmt.Sprintf("ranks=%d/%s/stop=%d", ranks, rule, stopAt), func(t *testing.T) {
					src := images(t, 50)
					opts := func(dir string) func(int) []Option {
						return func(int) []Option {
							o := []Option{WithModel(bnNet), WithData(src, 6), WithEval(images(t, 21), 4), WithSteps(12), WithLR(0.02), WithDevice("ref", 1),
								WithOptimizer(optim.Default(rule, 1e-3)), WithClipNorm(1), WithAccumulate(2), WithSeed(11)}
							if dir != "" {
								o = append(o, WithCheckpoints(dir, 4))
							}
							return o
						}
					}
					want := runRanks(t, ranks, opts(""))
					dir := t.TempDir()
					first := runRanksStop(t, ranks, opts(dir), stopAt)
					rest := runRanks(t, ranks, opts(dir))
					got := append(first, rest...)
					if len(got) != len(want) || len(first) != stopAt+1 {
						t.Fatalf("%d + %d steps, want %d", len(first), len(rest), len(want))
					}
					for i := range want {
						if got[i] != want[i] {
							t.Errorf("step %d: loss %.17g, want %.17g", i+1, got[i], want[i])
						}
					}
				})
			}
		}
	}
}
