package train

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
)

// watcher records what Profile calls.
type watcher struct {
	calls   []string
	kernels []int
	kinds   map[string]bool
}

func (w *watcher) Ready(_ context.Context, dev npu.Device, s npu.Stream) error {
	w.calls = append(w.calls, "ready "+dev.Info().Family)
	return nil
}

func (w *watcher) Before(context.Context) error {
	w.calls = append(w.calls, "before")
	return nil
}

func (w *watcher) Step(p Profiled) error {
	w.calls, w.kernels = append(w.calls, "step"), append(w.kernels, len(p.Kernels))
	w.kinds = map[string]bool{}
	for _, k := range p.Kernels {
		w.kinds[k.Launch.Kernel().Op().Kind] = true
	}
	return nil
}

func profiled(t *testing.T, more ...Option) *Trainer {
	t.Helper()
	tr, err := New(append([]Option{WithModel(convnet), WithData(images(t, 96), 8), WithSteps(50), WithLR(0.01), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.SGD, 1e-4))}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// The first step is not counted, each other one has the same kernels, those of the optimizer among them.
func TestProfile(t *testing.T) {
	w := &watcher{}
	if err := profiled(t).Profile(t.Context(), 2, w); err != nil {
		t.Fatal(err)
	}
	if want := []string{"ready ref", "before", "step", "before", "step"}; !slices.Equal(w.calls, want) {
		t.Errorf("calls %q", w.calls)
	}
	if len(w.kernels) != 2 || w.kernels[0] != w.kernels[1] || w.kernels[0] < 10 {
		t.Errorf("kernels of the steps: %v", w.kernels)
	}
	for _, want := range []string{npu.Conv2D, npu.Conv2DBwdWeights, npu.SGD} {
		if !w.kinds[want] {
			t.Errorf("no %s among %v", want, w.kinds)
		}
	}
}

// A stop ends a profile; what saves, or what ran already, is not profiled.
func TestProfileEnds(t *testing.T) {
	tr := profiled(t)
	tr.Stop()
	if err := tr.Profile(t.Context(), 2, &watcher{}); !errors.Is(err, ErrStopped) || launch.ExitCode(err) != launch.ExitNotResumable {
		t.Errorf("stopped: %v", err)
	}
	if err := tr.Profile(t.Context(), 2, &watcher{}); err == nil || !strings.Contains(err.Error(), "only once") {
		t.Errorf("again: %v", err)
	}
	if err := profiled(t, WithCheckpoints(t.TempDir(), 1)).Profile(t.Context(), 2, &watcher{}); err == nil || !strings.Contains(err.Error(), "leave SaveDir") {
		t.Errorf("with checkpoints: %v", err)
	}
}
