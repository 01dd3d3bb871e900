package resnet

import (
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// TestParameterCount holds the sizes that torchvision documents.
func TestParameterCount(t *testing.T) {
	for depth, want := range map[int]int64{18: 11689512, 34: 21797672, 50: 25557032, 101: 44549160, 152: 60192808} {
		for _, v1 := range []bool{false, true} {
			b := graph.New(graph.ForEval())
			y := Build(b, b.Input("image", npu.F32, 2, 3, 224, 224), Config{Depth: depth, V1: v1})
			b.Output("logits", y)
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			var n int64
			for _, p := range b.Params() {
				n += p.Shape.Elems()
			}
			if d := b.Desc(y); n != want || !d.Equal(npu.D(npu.F32, 2, 1000)) {
				t.Errorf("resnet%d v1=%t: %d parameters, want %d; logits %s", depth, v1, n, want, d)
			}
		}
	}
}

func train(t testing.TB, cfg Config, batch, size int) *graph.Builder {
	b := graph.New()
	x, labels := b.Input("image", npu.F32, batch, 3, size, size), b.Input("label", npu.I32, batch)
	logits := Build(b, x, cfg)
	loss, count := b.CrossEntropy(logits, labels)
	b.Loss(loss)
	b.Output("count", count)
	b.Output("logits", logits)
	if err := b.Grad(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLowerResNet50(t *testing.T) {
	b := train(t, Config{Depth: 50, ZeroInitLast: true}, 2, 224)
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, c := range g.Calls {
		kinds[c.Kind]++
	}
	want := map[string]int{
		npu.Conv2D: 53, npu.BatchNorm: 53, npu.Relu: 49, npu.MaxPool: 1, npu.GlobalAvgPool: 1, npu.MatMul: 3, npu.CrossEntropy: 1, npu.CrossEntropyBwd: 1,
		npu.Conv2DBwdData: 52, npu.Conv2DBwdWeights: 53, npu.BatchNormBwd: 53, npu.ReluBwd: 49, npu.MaxPoolBwd: 1, npu.GlobalAvgPoolBwd: 1,
		npu.Binary: 16 + 16, npu.Reduce: 1, // residual sums and, for each, the sum of two gradients; fc's bias
	}
	for k, n := range kinds {
		if want[k] != n {
			t.Errorf("%s: %d calls, want %d", k, n, want[k])
		}
	}
	if len(g.Trained) != 161 {
		t.Errorf("%d trained parameters, want 161", len(g.Trained))
	}
}

func BenchmarkBuild(bm *testing.B) {
	for range bm.N {
		if _, err := train(bm, Config{Depth: 50}, 16, 224).Lower(); err != nil {
			bm.Fatal(err)
		}
	}
}
