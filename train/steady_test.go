package train

import (
	"context"
	"runtime"
	"testing"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
	"github.com/gotrain/gotrain/optim"
)

// A step must not leak memory or keep the garbage collector busy: it allocates only a few events and contexts.
func TestSteadyStateAllocatesNothingThatGrows(t *testing.T) {
	if dev, err := npu.Open("cpu", npu.Options{Threads: 1}); err != nil {
		t.Skip("the plain-Go device allocates in its kernels, and there is no other: ", err)
	} else if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	var at [2]runtime.MemStats
	tr, err := New(WithModel(convnet), WithData(images(t, 96), 8), WithSteps(500), WithLR(0.01), WithDevice("cpu", 1),
		WithOptimizer(optim.Default(optim.SGD, 1e-4)))
	if err != nil {
		t.Fatal(err)
	}
	tr.afterStep = func(step int) {
		switch step {
		case 100:
			runtime.GC()
			runtime.ReadMemStats(&at[0])
		case 500:
			runtime.GC()
			runtime.ReadMemStats(&at[1])
		}
	}
	ctx, cancel := context.WithCancel(t.Context()) // holds on to contexts that are derived from it and not released
	defer cancel()
	if _, err := tr.Run(ctx); err != nil {
		t.Fatal(err)
	}
	const steps = 400
	bytes, objects := int64(at[1].HeapAlloc)-int64(at[0].HeapAlloc), int64(at[1].HeapObjects)-int64(at[0].HeapObjects)
	if bytes > 256<<10 || objects > steps/2 {
		t.Errorf("the heap grew by %d bytes and %d objects in %d steps", bytes, objects, steps)
	}
	t.Logf("%.1f allocations, %.0f bytes a step", float64(at[1].Mallocs-at[0].Mallocs)/steps, float64(at[1].TotalAlloc-at[0].TotalAlloc)/steps)
	if per := float64(at[1].Mallocs-at[0].Mallocs) / steps; per > 60 {
		t.Errorf("%.1f allocations a step", per)
	}
}
