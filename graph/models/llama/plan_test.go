package llama_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// planned plans stories260k for training on the reference device.
func planned(t *testing.T, c llama.Config, o plan.Options) *plan.Plan {
	t.Helper()
	dev, err := npu.Open("ref", npu.Options{})
	check(t, err)
	t.Cleanup(func() { dev.Close() })
	b := graph.New()
	loss, count := c.Loss(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, b.Input("targets", npu.I32, 2, 96), llama.Weights{})
	b.Loss(loss)
	b.Output("count", count)
	g, err := b.Lower()
	check(t, err)
	p, err := plan.Build(g, dev, o)
	check(t, err)
	return p
}

// counts tells how often each kind stands in a plan; a kind with the attribute add is its own.
func counts(p *plan.Plan) map[string]int {
	n := map[string]int{}
	for _, s := range p.Steps {
		kind := s.Op.Kind
		if s.Op.Attrs.Bool("add") {
			kind += "+add"
		}
		n[kind]++
	}
	return n
}

// The residual stream is summed where it is normalised, its gradients likewise; loss and gradients of the last layer are one op, and the
// embedding adds its rows to the gradient that this op made, in place.
func TestFusions(t *testing.T) {
	c := stories(t)
	p := planned(t, c, plan.Options{})
	got, l := counts(p), c.Layers
	want := map[string]int{
		"embedding": 1, "embedding_bwd+add": 1, "linear_cross_entropy_grad": 1, "rmsnorm": 1, "rmsnorm+add": 2 * l, "rmsnorm_bwd": 1, "rmsnorm_bwd+add": 2 * l,
		"matmul": 21 * l, "rope": 4 * l, "attention": l, "attention_bwd": l, "swiglu": l, "swiglu_bwd": l, "binary": 3 * l, // where a norm feeds several products
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, w := range p.Weights {
		if w.Name != "model.embed_tokens.weight" {
			continue
		}
		for _, s := range p.Steps {
			if s.Op.Kind == npu.LinearCrossEntropyGrad && p.Memory(s.Out[4]) != w.Grad {
				t.Error("the gradient of the tied table is copied")
			}
		}
		if w.Ready < len(p.Steps)-3 {
			t.Errorf("the gradient of the tied table is ready after step %d of %d", w.Ready, len(p.Steps))
		}
	}
}

// Recomputation keeps one activation a layer, runs each layer's ops twice but for its last product and the sum, and changes no bit of the numbers.
func TestRecomputation(t *testing.T) {
	c := stories(t)
	kept, again := planned(t, c, plan.Options{}), planned(t, c, plan.Options{Recompute: true})
	if ratio := float64(again.Arena) / float64(kept.Arena); ratio > 0.5 {
		t.Errorf("%d bytes with recomputation, %d without", again.Arena, kept.Arena)
	}
	a, k := counts(again), counts(kept)
	if a["matmul"] != k["matmul"]+6*c.Layers || a["attention"] != 2*k["attention"] || a["linear_cross_entropy_grad"] != 1 {
		t.Errorf("with recomputation %v\nwithout %v", a, k)
	}
	w, in := open(t, weightsFile), open(t, reference)
	run := func(o graph.Options) *graphtest.Device {
		b := graph.New()
		loss, _ := c.Loss(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, b.Input("targets", npu.I32, 2, 96), llama.Weights{})
		b.Loss(loss)
		m := onDevice(t, "cpu", b, o, w)
		m.SetInts("tokens", ints(t, in, "input_ids")...)
		m.SetInts("targets", ints(t, in, "target_ids")...)
		m.Set(graph.LossScaleInput, 1)
		m.Run()
		return m
	}
	for _, compute := range []npu.DType{npu.F32, npu.BF16} {
		// Fusion may round a sum in another place, so the comparison to the bit is without it.
		x, y := run(graph.Options{Compute: compute, NoFuse: true}), run(graph.Options{Compute: compute, NoFuse: true, Recompute: true})
		if !slices.Equal(x.Output("loss"), y.Output("loss")) {
			t.Errorf("%v: losses %v and %v", compute, x.Output("loss"), y.Output("loss"))
		}
		again := y.Grads()
		for name, g := range x.Grads() {
			if !slices.Equal(g, again[name]) {
				t.Errorf("%v: the gradient of %s changes", compute, name)
			}
		}
	}
}

// A limit of memory recomputes norms and SwiGLU, and changes no bit of the numbers: fused, in float32 and bf16, accumulated or not, with layers recomputed
// and without.
func TestCheapRecomputationIsBitEqual(t *testing.T) {
	c, w, in := stories(t), open(t, weightsFile), open(t, reference)
	for _, o := range []graph.Options{{}, {Compute: npu.BF16}, {Accumulate: true}, {Recompute: true}, {Compute: npu.BF16, Recompute: true}} {
		run := func(limit bool) (*graphtest.Device, map[string]int) {
			b := graph.New()
			loss, _ := c.Loss(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, b.Input("targets", npu.I32, 2, 96), llama.Weights{})
			b.Loss(loss)
			made := map[string]int{}
			fit := func(p *graph.Program) {
				if !limit {
					return
				}
				before := p.Scratch()
				_, err := p.Fit(1, nil)
				var small *plan.TooSmall
				if !errors.As(err, &small) {
					t.Fatalf("a limit of one byte: %v", err)
				}
				f, err := p.Fit(before-small.Before+small.Least, nil)
				check(t, err)
				if f.After != small.Least || p.Scratch() > before || !o.Recompute && p.Scratch() == before {
					t.Errorf("%+v: %d bytes, were %d: %+v", o, p.Scratch(), before, f)
				}
				for _, x := range f.Made {
					made[x.Kind]++
				}
			}
			m := graphtest.OnDevice(t, "cpu", 2, b, o, func(name string) []float32 { return floats(t, w, name) }, fit)
			m.SetInts("tokens", ints(t, in, "input_ids")...)
			m.SetInts("targets", ints(t, in, "target_ids")...)
			m.Set(graph.LossScaleInput, 1)
			m.Run()
			return m, made
		}
		x, _ := run(false)
		y, made := run(true)
		if !o.Recompute && (made[npu.SwiGLU] < c.Layers || made[npu.RMSNorm] < 2*c.Layers) {
			t.Errorf("%+v: made again: %v", o, made)
		}
		if !slices.Equal(x.Output("loss"), y.Output("loss")) {
			t.Errorf("%+v: losses %v and %v", o, x.Output("loss"), y.Output("loss"))
		}
		again := y.Grads()
		for name, g := range x.Grads() {
			if !slices.Equal(g, again[name]) {
				t.Errorf("%+v: the gradient of %s changes", o, name)
			}
		}
	}
}

func TestRecomputationNeedsBlocks(t *testing.T) {
	b := graph.New()
	x := b.Input("x", npu.F32, 2, 3)
	b.Loss(b.Sum(b.Linear(x, b.Param("w", npu.Shape{4, 3}, graph.Ones()), nil)))
	dev, err := npu.Open("ref", npu.Options{})
	check(t, err)
	defer dev.Close()
	if _, err := graph.Compile(b, dev, graph.Options{Recompute: true}); err == nil || !strings.Contains(err.Error(), "Builder.Block") {
		t.Errorf("got %v", err)
	}
}

// With constant weights conversions run once, before everything else, and nothing overwrites what they made.
func TestConstantWeights(t *testing.T) {
	w, want := open(t, weightsFile), open(t, reference)
	var got [][]float32
	for _, constant := range []bool{false, true} {
		b := graph.New(graph.ForEval())
		b.Output("logits", stories(t).Logits(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, 2, 96)}, llama.Weights{}))
		m := onDevice(t, "cpu", b, graph.Options{Compute: npu.BF16, Constant: constant}, w)
		p := m.Prog.Plan()
		for i, s := range p.Steps {
			weight := s.Op.Kind == npu.Convert && p.Tensors[s.In[0]].Role == plan.Param
			if constant && weight != (i < p.Once) {
				t.Errorf("step %d of %d, %s of %q, runs once: %t", i, len(p.Steps), s.Op.Kind, s.Name, i < p.Once)
			}
		}
		if (p.Once > 0) != constant {
			t.Errorf("constant %t: %d steps run once", constant, p.Once)
		}
		m.SetInts("tokens", ints(t, want, "input_ids")...)
		if constant {
			if err := m.Prog.Run(m.Stream, false, nil); err == nil || !strings.Contains(err.Error(), "Prepare") {
				t.Errorf("unprepared: %v", err)
			}
			check(t, m.Prog.Prepare(m.Stream))
			m.Run()
		}
		m.Run()
		got = append(got, m.Output("logits"))
	}
	if !slices.Equal(got[0], got[1]) {
		t.Error("constant weights change the logits")
	}
}
