package graph_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/npu"
)

// biased is attention of q [B S H D] and k, v [B T H D] with a bias that is added to the scores, of a shape that broadcasts to [B H S T]: PyTorch's float
// attn_mask. The bias may be a parameter. Unlike Builder.Attention it stores the scores.
func biased(b *graph.Builder, q, k, v, bias *graph.Node) *graph.Node {
	heads := func(x *graph.Node) *graph.Node { return b.Transpose(x, 0, 2, 1, 3) } // [B H S D]
	scores := b.Affine(b.MatMul(heads(q), heads(k), false, true), 1/math.Sqrt(float64(b.Dim(q, -1))), 0)
	return heads(b.MatMul(b.Softmax(b.Add(scores, bias)), heads(v), false, false))
}

// A bias of positions: the second query is drawn to the first key.
func ExampleBuilder_Attention_bias() {
	b := graph.New()
	q, v := b.Input("q", npu.F32, 1, 2, 1, 1), b.Input("v", npu.F32, 1, 2, 1, 1)
	bias := b.Param("bias", npu.Shape{1, 1, 2, 2}, graph.Zeros()) // one table for all samples; [1 H S T] is one for each head
	b.Output("o", biased(b, q, q, v, bias))

	g, err := b.Lower()
	if err != nil {
		fmt.Println(err)
		return
	}
	m := graphtest.New(g)
	for name, values := range map[string][]float64{"q": {0, 0}, "v": {1, 3}, "bias": {0, 0, math.Log(3), 0}} {
		if err := m.Set(name, values...); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := m.Run(); err != nil {
		fmt.Println(err)
		return
	}
	o, err := m.Named("o")
	fmt.Printf("%.2f %v\n", o, err)
	// Output: [2.00 1.50] <nil>
}

// With a bias that hides keys it is attention with a mask, and so are its gradients; gradients of the bias, added up over samples, are central differences.
func TestAttentionWithABias(t *testing.T) {
	const n, s, h, d = 2, 3, 2, 4
	values := map[string][]float64{"hidden": {0, -1e9, 0, 0, 0, -1e9, 0, 0, 0}, "seen": {1, 0, 1, 1, 1, 0, 1, 1, 1}, "weights": graphtest.Random("w", n*s*h*d)}
	for _, name := range []string{"q", "k", "v"} {
		values[name] = graphtest.Random(name, n*s*h*d)
	}
	var got [2]*graphtest.Machine
	for i := range got {
		b := graph.New()
		q, k, v := param(b, "q", n, s, h, d), param(b, "k", n, s, h, d), param(b, "v", n, s, h, d)
		seen, hidden, w := ids(b, "seen", s, s), b.Input("hidden", npu.F32, s, s), b.Input("weights", npu.F32, n, s, h, d)
		o := biased(b, q, k, v, hidden)
		b.Output("also", b.Sum(b.Cast(seen, npu.F32))) // both graphs read all inputs
		if i == 1 {
			o = b.Attention(q, k, v, graph.Attention{Mask: seen})
			b.Output("more", b.Sum(hidden))
		}
		b.Output("o", o)
		b.Loss(b.Sum(b.Mul(o, w)))
		got[i] = run(t, b, values)
	}
	for _, name := range []string{"q", "k", "v"} {
		near(t, "the gradient of "+name, got[0].Grad(name), got[1].Grad(name))
	}
	a, errA := got[0].Named("o")
	o, errO := got[1].Named("o")
	if errA != nil || errO != nil {
		t.Fatal(errA, errO)
	}
	near(t, "the result", a, o)

	for _, shape := range []npu.Shape{{s, s}, {1, h, s, s}, {n, 1, s, s}, {n, h, s, s}} {
		b := graph.New()
		o := biased(b, param(b, "q", n, s, h, d), param(b, "k", n, s, h, d), param(b, "v", n, s, h, d), param(b, "bias", shape...))
		b.Loss(b.Sum(b.Mul(o, b.Input("weights", npu.F32, n, s, h, d))))
		g, err := b.Lower()
		if err != nil {
			t.Fatal(err)
		}
		of := maps.Clone(values)
		of["bias"] = graphtest.Random("bias", int(shape.Elems()))
		delete(of, "seen")
		delete(of, "hidden")
		if err := graphtest.CheckGrads(g, of, 1e-7); err != nil {
			t.Errorf("a bias %v: %v", shape, err)
		}
	}
}

// near compares float32 results of two ways to compute the same.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d < 2e-6) || len(got) != len(want) {
			t.Fatalf("%s is %v, want %v", what, got, want)
		}
	}
}

// A float mask is refused, and the hint says what to write.
func TestFloatMasksAreRefused(t *testing.T) {
	for name, a := range map[string]func(x *graph.Node) graph.Attention{
		"Mask": func(x *graph.Node) graph.Attention { return graph.Attention{Mask: x} },
		"Keys": func(x *graph.Node) graph.Attention { return graph.Attention{Keys: x} },
	} {
		b := graph.New()
		x := b.Input("x", npu.F32, 1, 2, 1, 4)
		b.Attention(x, x, x, a(b.Input("bias", npu.F32, 2, 2)))
		err := b.Err()
		if err == nil || !strings.Contains(err.Error(), name+" is f32[2 2], want i32") || !strings.Contains(err.Error(), "hint: what is added to scores") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
