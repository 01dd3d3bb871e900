package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
)

// gatedNet is two layers that have something cheap to recompute: norms and SwiGLU.
func gatedNet(b *graph.Builder, in Inputs) Outputs {
	x := in["image"]
	linear := func(name string, x *graph.Node, out int) *graph.Node {
		return b.Linear(x, b.Param(name, []int{out, b.Dim(x, -1)}, graph.KaimingNormal(graph.FanIn)), nil)
	}
	for _, name := range []string{"a", "b"} {
		b.Block(name, func() {
			h := b.RMSNorm(x, b.Param("norm", npu.Shape{b.Dim(x, -1)}, graph.Ones(), graph.NoDecay()), 1e-5)
			x = b.Add(linear("down", b.SwiGLU(linear("gate", h, 48), linear("up", h, 48)), 6), x)
		})
	}
	loss, n := b.CrossEntropy(linear("head", x, 4), in["label"])
	return Outputs{Loss: loss, Count: n}
}

func gatedRun(t *testing.T, o ...Option) []Option {
	return append([]Option{WithModel(gatedNet), WithData(noise(t, 640), 64), WithSteps(4), WithLR(0.02), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.AdamW, 1e-3)), WithSeed(5)}, o...)
}

func summaryOf(t *testing.T, o ...Option) (*Summary, error) {
	t.Helper()
	tr, err := New(gatedRun(t, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tr.Summarise(t.Context(), 2)
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	return s, err
}

// A plan stays below the limit, recomputes no more than that takes, and says what it costs.
func TestMemoryLimitOfAPlan(t *testing.T) {
	free, err := summaryOf(t)
	if err != nil {
		t.Fatal(err)
	}
	if free.Limit != nil {
		t.Errorf("without a limit: %+v", free.Limit)
	}
	roomy, err := summaryOf(t, WithMemoryLimit(free.Total()))
	if err != nil || roomy.Limit == nil || len(roomy.Limit.Made) != 0 || roomy.Total() != free.Total() {
		t.Fatalf("with room enough: %+v, %v", roomy, err)
	}
	before := 0
	for _, less := range []int64{1, 8 << 10} {
		s, err := summaryOf(t, WithMemoryLimit(free.Total()-less))
		if err != nil {
			t.Fatal(err)
		}
		l, n := s.Limit, 0
		for _, m := range l.Made {
			n += m.Count
		}
		if s.Total() > free.Total()-less || n <= before || l.ExtraFLOP <= 0 || l.ExtraFLOP > s.ForwardFLOP/4 || l.Before-l.After < less {
			t.Errorf("%d bytes less: %d of %d bytes, %d results recomputed, %+v", less, s.Total(), free.Total(), n, l)
		}
		before = n
	}
}

// Ranks with a limit learn the same as without it, bit by bit, also with accumulation; all of them choose the same.
func TestMemoryLimitDoesNotChangeNumbers(t *testing.T) {
	free, err := summaryOf(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, accumulate := range []int{1, 2} {
		run := func(limit int64) float64 {
			res, errs := together(t, 2, func(int) []Option { return gatedRun(t, WithMemoryLimit(limit), WithAccumulate(accumulate)) }, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			return res[0].Loss
		}
		if a, b := run(0), run(free.Total()-8<<10); a != b {
			t.Errorf("%d micro-batches: the loss is %v, with a limit %v", accumulate, a, b)
		}
	}
}

// Ranks with different limits do not begin.
func TestMemoryLimitsMustAgree(t *testing.T) {
	free, err := summaryOf(t)
	if err != nil {
		t.Fatal(err)
	}
	_, errs := together(t, 2, func(rank int) []Option { return gatedRun(t, WithMemoryLimit(free.Total()-int64(rank)*8<<10)) }, nil)
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "train.memory_limit_mb = ") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// Ranks whose kernels need more room than others', as with other numbers of threads, decide how much is recomputed; all do the same.
func TestMemoryLimitWithOtherWorkspaces(t *testing.T) {
	free, err := summaryOf(t)
	if err != nil {
		t.Fatal(err)
	}
	run := func(limit int64, devices ...string) (loss float64, made []int) {
		made = make([]int, len(devices))
		res, errs := together(t, len(devices), func(r int) []Option { return gatedRun(t, WithMemoryLimit(limit), WithDevice(devices[r], 1)) },
			func(tr *Trainer, r, _ int) {
				if tr.fitted != nil {
					made[r] = len(tr.fitted.Made)
				}
			})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return res[0].Loss, made
	}
	limit := free.Total() - 1
	want, few := run(limit, "ref", "ref")
	if few[0] == 0 || few[0] != few[1] {
		t.Fatalf("%v results recomputed", few)
	}
	for _, devices := range [][]string{{"ref", "roomy"}, {"roomy", "ref"}} {
		loss, n := run(limit, devices...)
		if n[0] != n[1] || n[0] <= few[0] || loss != want {
			t.Errorf("%v: %d results recomputed, without them %d; the loss is %v, want %v", devices, n, few, loss, want)
		}
	}
}

// roomy is the plain-Go device with larger workspaces, as the kernels of more threads have them.
type roomy struct{ npu.Device }

type roomyKernel struct{ npu.Kernel }

func (d roomy) Compile(op npu.Op) (npu.Kernel, error) {
	k, err := d.Device.Compile(op)
	return roomyKernel{k}, err
}

func (k roomyKernel) Workspace() int64 { return k.Kernel.Workspace() + 8<<10 }

func init() {
	npu.Register("roomy", -1, func(o npu.Options) (npu.Device, error) {
		o.Extra = nil // without calibration
		d, err := npu.Open("ref", o)
		return roomy{d}, err
	})
}

// A limit that cannot be met is refused before memory is taken, with what is needed, the least, and what helps.
func TestMemoryLimitThatCannotBeMet(t *testing.T) {
	tr, err := New(gatedRun(t, WithMemoryLimit(1<<20))...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tr.Run(context.Background())
	if launch.ExitCode(err) != launch.ExitRecipe {
		t.Fatalf("exit code %d, %v", launch.ExitCode(err), err)
	}
	for _, want := range []string{"a rank needs 65 MiB", "program and libraries 64 MiB", "the limit is 1 MiB", "hint: ", `train.recompute = "layer" needs about`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if _, err := New(gatedRun(t, WithMemoryLimit(-1))...); err == nil || !strings.Contains(err.Error(), "limit of memory") {
		t.Errorf("a negative limit: %v", err)
	}
}
