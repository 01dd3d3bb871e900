package vit

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/npu"
)

// TestAgainstTimm compares logits, loss and every gradient of a training step. Both sides compute in float64; the bound 1e-6 is the float32 in which the
// reference is stored.
func TestAgainstTimm(t *testing.T) {
	const bound = 1e-6
	for name, cfg := range map[string]Config{
		"token": {Dim: 12, Depth: 2, Heads: 2, Patch: 4, Classes: 5},
		"mean":  {Dim: 12, Depth: 2, Heads: 2, Patch: 4, Classes: 5, NoToken: true, Mean: true, NoQKV: true},
	} {
		t.Run(name, func(t *testing.T) {
			ref, err := graphtest.Reference("testdata/" + name + ".safetensors")
			if err != nil {
				t.Fatal(err)
			}
			b := graph.New()
			x, labels := b.Input("image", npu.F32, 4, 3, 16, 16), b.Input("label", npu.I32, 4)
			logits := Build(b, x, cfg)
			loss, _ := b.CrossEntropy(logits, labels, graph.Smoothing(0.1))
			b.Loss(loss)
			b.Output("logits", logits)
			g, err := b.Lower()
			if err != nil {
				t.Fatal(err)
			}
			m := graphtest.NewF64(g)
			inputs := map[string][]float64{"image": ref["x"], "label": ref["labels"], graph.LossScaleInput: {0.25}} // the reference's loss is a mean
			for _, p := range b.Params() {
				inputs[p.Name] = ref[p.Name]
			}
			for name, v := range inputs {
				if err := m.Set(name, v...); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Run(); err != nil {
				t.Fatal(err)
			}
			got := func(name string) []float64 {
				v, err := m.Named(name)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			if d := graphtest.Distance(got("logits"), ref["logits"]); !(d < bound) {
				t.Errorf("logits differ by %g", d)
			}
			if l := got("loss")[0] / 4; !(math.Abs(l/ref["loss"][0]-1) < bound) {
				t.Errorf("loss %g, want %g", l, ref["loss"][0])
			}
			grads := 0
			for name, want := range ref {
				if p, ok := strings.CutPrefix(name, "grad."); ok {
					if d := graphtest.Distance(m.Grad(p), want); !(d < bound) {
						t.Errorf("gradient of %s differs by %g", p, d)
					}
					grads++
				}
			}
			if grads != len(b.Params()) {
				t.Errorf("%d gradients in the reference for %d parameters", grads, len(b.Params()))
			}
		})
	}
}

// facts is testdata/timm.json.
type facts struct {
	Names     map[string][][2]any
	Positions []struct {
		Prefix, From, To int
		Has, Want        []float32
	}
}

func timm(t *testing.T) (f facts) {
	raw, err := os.ReadFile("testdata/timm.json")
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Parameters have the names, shapes and order of timm's, so that its weights load here and ours load there; biases, norms and tokens are not decayed.
func TestNamesOfTimm(t *testing.T) {
	for size, want := range timm(t).Names {
		b := graph.New()
		Build(b, b.Input("image", npu.F32, 1, 3, 224, 224), Sized(size))
		if b.Err() != nil || len(b.Params()) != len(want) || len(want) < 150 {
			t.Fatalf("%s: %d parameters, want %d: %v", size, len(b.Params()), len(want), b.Err())
		}
		var names []string
		for i, p := range b.Params() {
			names = append(names, p.Name)
			shape := want[i][1].([]any)
			same := len(shape) == len(p.Shape)
			for k := range shape {
				same = same && int(shape[k].(float64)) == p.Shape[k]
			}
			if p.Name != want[i][0] || !same {
				t.Errorf("%s %v, want %v", p.Name, p.Shape, want[i])
			}
			if plain := len(p.Shape) == 1 || p.Name == "cls_token" || p.Name == "pos_embed"; p.NoDecay != plain {
				t.Errorf("%s: NoDecay is %t", p.Name, p.NoDecay)
			}
		}
		if got := Recognise(names); got != "a ViT of 12 blocks" {
			t.Error(got)
		}
	}
	if got := Recognise([]string{"pos_embed", "blocks.1.attn.qkv.weight"}); got != "" {
		t.Error(got)
	}
}

// Positions are resized as timm does. The bound is that of its float32.
func TestAdaptEqualsTimm(t *testing.T) {
	for _, c := range timm(t).Positions {
		shape := func(n int) npu.Shape { return npu.Shape{1, c.Prefix + n*n, 2} }
		f := Adapt("pos_embed", shape(c.From), shape(c.To))
		if f == nil {
			t.Fatalf("%d to %d: no function", c.From, c.To)
		}
		got := f(c.Has)
		if len(got) != len(c.Want) {
			t.Fatalf("%d values, want %d", len(got), len(c.Want))
		}
		for i := range got {
			if math.Abs(float64(got[i]-c.Want[i])) > 2e-6 {
				t.Errorf("%d to %d: value %d is %g, want %g", c.From, c.To, i, got[i], c.Want[i])
			}
		}
	}
	for _, c := range []struct {
		name      string
		has, want npu.Shape
	}{{"head.weight", npu.Shape{1, 5, 2}, npu.Shape{1, 10, 2}}, {"pos_embed", npu.Shape{1, 7, 2}, npu.Shape{1, 10, 2}},
		{"pos_embed", npu.Shape{1, 5, 2}, npu.Shape{1, 10, 3}}, {"pos_embed", npu.Shape{5, 2}, npu.Shape{10, 2}}} {
		if Adapt(c.name, c.has, c.want) != nil {
			t.Errorf("%+v is adapted", c)
		}
	}
}

// Stochastic depth grows from the first block to the last, in training only.
func TestDropPath(t *testing.T) {
	cfg := Config{Dim: 8, Depth: 3, Heads: 2, Patch: 4, Classes: 3, DropPath: 0.2}
	rates := func(opts ...graph.Option) (out []float64) {
		b := graph.New(opts...)
		y := Build(b, b.Input("image", npu.F32, 2, 3, 8, 8), cfg)
		b.Output("y", y)
		if b.Training() {
			b.Loss(b.Sum(y))
		}
		g, err := b.Lower()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range g.Calls {
			if c.Kind == npu.Dropout {
				out = append(out, c.Attrs.Float("p", 0))
			}
		}
		return out
	}
	if got := rates(); !slices.Equal(got, []float64{0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1}) { // the second half are gradients
		t.Errorf("in training %v", got)
	}
	if got := rates(graph.ForEval()); got != nil {
		t.Errorf("in evaluation %v", got)
	}
}

// Mistakes are errors of the builder that name what is wrong.
func TestFaults(t *testing.T) {
	for want, c := range map[string]Config{
		"depth is 0, must be at least 1":                             Sized("vit-xxl"),
		"5 heads do not divide a width of 12":                        {Dim: 12, Depth: 1, Heads: 5},
		"pictures [1 3 20 20] do not divide into patches of 8":       {Dim: 12, Depth: 1, Heads: 2, Patch: 8},
		"classifies the mean of its patches":                         {Dim: 12, Depth: 1, Heads: 2, NoToken: true},
		"dropout 0 and drop_path 1 must lie in 0…1":                  {Dim: 12, Depth: 1, Heads: 2, DropPath: 1},
		"mlp_ratio is 0.01, must be above 0\nvit: patch is -1, must": {Dim: 12, Depth: 1, Heads: 2, MLP: 0.01, Patch: -1},
	} {
		b := graph.New()
		Build(b, b.Input("image", npu.F32, 1, 3, 20, 20), c)
		if b.Err() == nil || !strings.Contains(b.Err().Error(), want) {
			t.Errorf("%v, want %s", b.Err(), want)
		}
	}
}
