package resnet

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/graph/plan"
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

// TestForwardFLOPs: torchvision documents 4.09 GMAC for ResNet-50 and 1.81 for ResNet-18 at 224 pixels (convolutions and the classifier).
func TestForwardFLOPs(t *testing.T) {
	for depth, want := range map[int]float64{18: 1.814, 50: 4.089} {
		g, err := train(t, Config{Depth: depth}, 2, 224).Lower()
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, c := range g.Calls {
			if c.Back || (c.Kind != npu.Conv2D && c.Kind != npu.MatMul) {
				continue
			}
			k, _ := op.Lookup(c.Kind)
			o := npu.Op{Kind: c.Kind, Attrs: c.Attrs, Out: []npu.Desc{g.Values[c.Out[0]].Desc}}
			for _, in := range c.In {
				o.In = append(o.In, g.Values[in].Desc)
			}
			n += k.FLOPs(o)
		}
		if got := float64(n) / 2 / 2 / 1e9; got < want-0.001 || got > want+0.001 {
			t.Errorf("resnet%d: %.4f GMAC an image, want %.3f", depth, got, want)
		}
	}
}

// TestVariants: where the strides are, and what the options change.
func TestVariants(t *testing.T) {
	strides := func(cfg Config) (out []int) {
		g, err := train(t, cfg, 2, 64).Lower()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range g.Calls {
			if c.Kind == npu.Conv2D && !c.Back && c.Attrs.Ints("stride")[0] == 2 {
				out = append(out, g.Values[c.In[1]].Desc.Shape[2])
			}
		}
		return out
	}
	for _, c := range []struct {
		cfg  Config
		want []int // kernel sizes of the convolutions with stride 2
	}{
		{Config{Depth: 50}, []int{7, 3, 1, 3, 1, 3, 1}},
		{Config{Depth: 50, V1: true}, []int{7, 1, 1, 1, 1, 1, 1}},
		{Config{Depth: 18}, []int{7, 3, 1, 3, 1, 3, 1}},
		{Config{Depth: 18, SmallStem: true, V1: true}, []int{3, 1, 3, 1, 3, 1}},
	} {
		if got := strides(c.cfg); !slices.Equal(got, c.want) {
			t.Errorf("%+v: strides in kernels of %v, want %v", c.cfg, got, c.want)
		}
	}
	b := graph.New()
	Build(b, b.Input("x", npu.F32, 2, 3, 32, 32), Config{Depth: 50, ZeroInitLast: true, Width: 16, Classes: 7})
	zero := 0
	for _, p := range b.Params() {
		if strings.HasSuffix(p.Name, ".weight") && p.Init == graph.Zeros() {
			zero++
			if !strings.HasSuffix(p.Name, "bn3.weight") {
				t.Errorf("%s starts with 0", p.Name)
			}
		}
	}
	if last := b.Params()[len(b.Params())-2]; zero != 16 || last.Name != "fc.weight" || !last.Shape.Equal(npu.Shape{7, 512}) {
		t.Errorf("%d zero weights, last %s %v", zero, last.Name, last.Shape)
	}
}

func TestStages(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want [5]npu.Shape
	}{
		{Config{Depth: 50}, [5]npu.Shape{{2, 64, 16, 16}, {2, 256, 16, 16}, {2, 512, 8, 8}, {2, 1024, 4, 4}, {2, 2048, 2, 2}}},
		{Config{Depth: 18, Width: 8, SmallStem: true}, [5]npu.Shape{{2, 8, 64, 64}, {2, 8, 64, 64}, {2, 16, 32, 32}, {2, 32, 16, 16}, {2, 64, 8, 8}}},
	} {
		b := graph.New(graph.ForEval())
		for i, s := range Stages(b, b.Input("image", npu.F32, 2, 3, 64, 64), c.cfg) {
			if d := b.Desc(s); !d.Equal(npu.D(npu.F32, c.want[i]...)) {
				t.Errorf("%+v: stage %d is %s, want %v", c.cfg, i, d, c.want[i])
			}
		}
	}
	b := graph.New()
	if s := Stages(b, b.Input("x", npu.F32, 2, 3, 32, 32), Config{}); b.Err() == nil || s[4] == nil {
		t.Errorf("no depth: %v", b.Err())
	}
}

func TestBadConfig(t *testing.T) {
	for _, cfg := range []Config{{}, {Depth: 51}, {Blocks: [4]int{1, 1, 1, 0}}, {Depth: 18, Classes: -1}, {Depth: 18, Momentum: 2}} {
		b := graph.New()
		y := Build(b, b.Input("x", npu.F32, 2, 3, 32, 32), cfg)
		if b.Err() == nil || y == nil {
			t.Errorf("%+v: error %v", cfg, b.Err())
		}
	}
	b := graph.New()
	if Build(b, b.Input("x", npu.F32, 2, 32), Config{Depth: 18}); b.Err() == nil || !strings.Contains(b.Err().Error(), "conv1") {
		t.Errorf("image of rank 2: %v", b.Err())
	}
}

// TestDropPath: each block but the first drops its branch before the sum, with timm's probabilities; evaluation has none of it.
func TestDropPath(t *testing.T) {
	b := graph.New()
	b.Loss(b.Sum(Build(b, b.Input("x", npu.F32, 2, 3, 32, 32), Config{Depth: 50, Classes: 10, Width: 8, DropPath: 0.05})))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range g.Calls {
		if c.Kind == npu.Dropout && !c.Back {
			n++
			if p := c.Attrs.Float("p", 0); !c.Attrs.Bool("rows") || math.Abs(p-0.05*float64(n)/15) > 1e-12 {
				t.Errorf("drop path %d: %s", n, c.Attrs)
			}
		}
	}
	if n != 15 {
		t.Errorf("%d blocks drop paths, want 15", n)
	}
	b = graph.New(graph.ForEval())
	b.Output("y", Build(b, b.Input("x", npu.F32, 2, 3, 32, 32), Config{Depth: 18, DropPath: 0.05}))
	if g, err = b.Lower(); err != nil || slices.ContainsFunc(g.Calls, func(c plan.Call) bool { return c.Kind == npu.Dropout }) {
		t.Errorf("evaluation drops paths, or %v", err)
	}
	b = graph.New()
	if Build(b, b.Input("x", npu.F32, 2, 3, 32, 32), Config{Depth: 18, DropPath: 1}); b.Err() == nil {
		t.Error("a probability of 1: no error")
	}
}
