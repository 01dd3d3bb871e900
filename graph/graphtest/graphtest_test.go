package graphtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// Check the gradient of a custom function.
func Example() {
	b := graph.New()
	w := b.Param("w", npu.Shape{3}, graph.Zeros())
	b.Loss(b.Sum(b.Mul(b.Sigmoid(w), b.Exp(w))))
	g, err := b.Lower()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graphtest.CheckGrads(g, map[string][]float64{"w": {-1, 0, 2}}, 1e-8))
	// Output:
	// <nil>
}

func init() {
	op.Register(&op.Kind{ // exp, with a gradient that is off by a thousandth; the reference sees unary
		Kind: kind.Register(&kind.Kind{
			Name: "test_wrong", In: "x", Out: "y",
			Shape: func(_ npu.Attrs, in []npu.Desc) ([]npu.Desc, error) { return in[:1], nil },
		}),
		Grad: func(t op.Tape, c op.Call) ([]op.Ref, error) {
			return t.Apply(npu.Unary, npu.Attrs{"fn": "affine", "alpha": 2.001}, c.DOut)
		},
	})
}

// TestWrongGradientIsFound: the check must be able to fail.
func TestWrongGradientIsFound(t *testing.T) {
	b := graph.New()
	b.Loss(b.Sum(b.Apply("test_wrong", nil, b.Param("w", npu.Shape{2}, graph.Zeros()))[0]))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Calls {
		if g.Calls[i].Kind == "test_wrong" {
			g.Calls[i].Kind, g.Calls[i].Attrs = npu.Unary, npu.Attrs{"fn": "affine", "alpha": 2.0}
		}
	}
	if err := graphtest.CheckGrads(g, nil, 1e-4); err == nil || !strings.Contains(err.Error(), "w[0]") {
		t.Errorf("wrong gradient: %v", err)
	}
	if err := graphtest.CheckGrads(g, nil, 1e-2); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	if err := graphtest.CheckGrads(g, map[string][]float64{"w": {1}}, 1e-2); err == nil {
		t.Error("wrong number of values: no error")
	}
}
