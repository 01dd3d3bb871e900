package nn_test

import (
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// TestTransformerIsFused: where a device has the kernels, residual sums go into layer norms and their gradients, and the gradients of q, k and v are laid
// side by side, instead of being padded with zeros and added. Gradients are as good as before.
func TestTransformerIsFused(t *testing.T) {
	const blocks = 2
	b := graph.New()
	x := nn.Linear{Out: 4}.Apply(b, "embed", b.Input("x", npu.F32, 2, 3, 5))
	for _, name := range []string{"0", "1"}[:blocks] {
		b.In(name, func() {
			x = b.Add(x, nn.MultiHeadAttention{Heads: 2}.Apply(b, "attn", nn.LayerNorm{}.Apply(b, "norm1", x)))
			x = b.Add(x, nn.MLP{Hidden: []int{6}, Out: 4, Act: nn.Gelu}.Apply(b, "mlp", nn.LayerNorm{}.Apply(b, "norm2", x)))
		})
	}
	y := nn.LayerNorm{}.Apply(b, "norm", x)
	b.Loss(b.Sum(b.Mul(y, b.Input("w", npu.F32, 2, 3, 4))))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	plan.Fuse(g, func(string, npu.Attrs) bool { return true })
	seen, sums := map[string]int{}, map[string]int{}
	for _, c := range g.Calls {
		seen[c.Kind]++
		if c.Attrs.Bool("add") {
			sums[c.Kind]++
		}
	}
	if n := 2*blocks + 1; seen[npu.LayerNorm] != n || seen[npu.LayerNormBwd] != n || sums[npu.LayerNorm] != n-1 || sums[npu.LayerNormBwd] != n-1 {
		t.Errorf("norms %d, %d of them with a sum; gradients %d, %d", seen[npu.LayerNorm], sums[npu.LayerNorm], seen[npu.LayerNormBwd], sums[npu.LayerNormBwd])
	}
	if seen[npu.Concat] != blocks || seen[npu.Pad] != 0 {
		t.Errorf("%d concatenations, %d pads; want %d and none", seen[npu.Concat], seen[npu.Pad], blocks)
	}
	if err := graphtest.CheckGrads(g, nil, 1e-6); err != nil {
		t.Error(err)
	}
}

// TestPartsThatAreNotTheWhole: pads that overlap, or leave a gap, stay a sum.
func TestPartsThatAreNotTheWhole(t *testing.T) {
	for name, ends := range map[string][2]int{"gap": {2, 3}, "overlap": {3, 2}, "beginning and end are missing": {2, 4}} {
		b := graph.New()
		x := nn.Linear{Out: 6}.Apply(b, "l", b.Input("x", npu.F32, 2, 3))
		one, two := b.Slice(x, 1, 1, ends[0]), b.Slice(x, 1, ends[1], 5)
		b.Loss(b.Add(b.Sum(b.Square(one)), b.Sum(b.Square(two))))
		g, err := b.Lower()
		if err != nil {
			t.Fatal(err)
		}
		plan.Fuse(g, func(string, npu.Attrs) bool { return true })
		pads := 0
		for _, c := range g.Calls {
			if c.Kind == npu.Concat {
				t.Errorf("%s: a concatenation", name)
			}
			if c.Kind == npu.Pad {
				pads++
			}
		}
		if pads != 2 {
			t.Errorf("%s: %d pads", name, pads)
		}
		if err := graphtest.CheckGrads(g, nil, 1e-6); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
