package nn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/graphtest"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// names lists parameters and states with their shapes.
func names(b *graph.Builder) (out []string) {
	for _, p := range b.Params() {
		out = append(out, p.Name+p.Shape.String())
	}
	for _, s := range b.States() {
		out = append(out, s.Name+s.Shape.String())
	}
	return out
}

func TestNamesAndShapes(t *testing.T) {
	b := graph.New()
	x := b.Input("x", npu.F32, 2, 4, 8, 8)
	y := nn.Sequential{
		nn.Conv2D{Out: 6, Kernel: 3, Stride: 2, Pad: 1, Groups: 2, Bias: true},
		nn.BatchNorm{},
		nn.Relu,
		nn.Residual{Body: nn.Conv2D{Out: 6, Kernel: 1}},
		nn.MaxPool(2, 2, 0),
		nn.AvgPool(2, 1, 0),
		nn.Flatten,
		nn.Dropout(0.1),
		nn.MLP{Hidden: []int{5}, Out: 3},
	}.Apply(b, "net", x)
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	if d := b.Desc(y); !d.Equal(npu.D(npu.F32, 2, 3)) {
		t.Errorf("result %s", d)
	}
	want := []string{
		"net.0.weight[6 2 3 3]", "net.0.bias[6]", "net.1.weight[6]", "net.1.bias[6]", "net.3.weight[6 6 1 1]",
		"net.8.0.weight[5 6]", "net.8.0.bias[5]", "net.8.1.weight[3 5]", "net.8.1.bias[3]", "net.1.running_mean[6]", "net.1.running_var[6]",
	}
	if got := names(b); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, p := range b.Params() {
		if decays := len(p.Shape) > 1; p.NoDecay == decays {
			t.Errorf("%s: NoDecay is %t", p.Name, p.NoDecay)
		}
	}
}

// TestTokens: the layers of language models, by the names and defaults of PyTorch.
func TestTokens(t *testing.T) {
	b := graph.New()
	x := b.Input("ids", npu.I32, 2, 5)
	y := nn.Sequential{
		nn.Embedding{Vocab: 11, Dim: 6},
		nn.RMSNorm{},
		nn.Residual{Body: nn.RMSNorm{Eps: 1e-6}},
		nn.Linear{Out: 11, NoBias: true},
	}.Apply(
		b,
		"net",
		x,
	)
	if d := b.Desc(y); b.Err() != nil || !d.Equal(npu.D(npu.F32, 2, 5, 11)) {
		t.Fatalf("result %s, %v", d, b.Err())
	}
	if got, want := names(b), []string{"net.0.weight[11 6]", "net.1.weight[6]", "net.2.weight[6]", "net.3.weight[11 6]"}; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	p := b.Params()
	if p[0].NoDecay || !p[1].NoDecay || p[0].Init != graph.Gaussian(1) || p[1].Init != graph.Ones() {
		t.Errorf("table %+v, norm %+v", *p[0], *p[1])
	}
	b.Loss(b.Sum(y))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	var eps []float64
	for _, c := range g.Calls {
		if c.Kind == npu.RMSNorm {
			eps = append(eps, c.Attrs.Float("eps", 0))
		}
	}
	if !slices.Equal(eps, []float64{1e-5, 1e-6}) {
		t.Errorf("eps %v", eps)
	}
	b = graph.New()
	nn.Embedding{Vocab: 3, Dim: 2, Init: graph.Gaussian(0.02), Frozen: true}.Apply(b, "e", b.Input("ids", npu.I32, 4))
	if p := b.Params()[0]; p.Init != graph.Gaussian(0.02) || !p.Frozen {
		t.Errorf("%+v", *p)
	}
}

// TestTransformer: the layers of vision transformers, by the names of timm.
func TestTransformer(t *testing.T) {
	b := graph.New()
	mask := graph.Attention{Segments: b.Input("segments", npu.I32, 2, 5)}
	block := nn.Sequential{
		nn.Residual{Body: nn.Sequential{nn.LayerNorm{Eps: 1e-6}, nn.MultiHeadAttention{Heads: 2, Init: graph.Gaussian(0.02), Mask: mask}}},
		nn.LayerNorm{NoBias: true},
		nn.LayerNorm{NoAffine: true},
		nn.MultiHeadAttention{Heads: 3, NoBias: true, Drop: 0.1, Frozen: true},
		nn.Gelu, nn.GeluTanh,
	}
	y := block.Apply(b, "net", b.Input("x", npu.F32, 2, 5, 6))
	if d := b.Desc(y); b.Err() != nil || !d.Equal(npu.D(npu.F32, 2, 5, 6)) {
		t.Fatalf("result %s, %v", d, b.Err())
	}
	want := []string{
		"net.0.0.weight[6]", "net.0.0.bias[6]", "net.0.1.qkv.weight[18 6]", "net.0.1.qkv.bias[18]", "net.0.1.proj.weight[6 6]", "net.0.1.proj.bias[6]",
		"net.1.weight[6]", "net.3.qkv.weight[18 6]", "net.3.proj.weight[6 6]", "net.3.proj.bias[6]",
	}
	if got := names(b); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for i, p := range b.Params() {
		if p.NoDecay != !strings.HasSuffix(p.Name, "qkv.weight") && !strings.HasSuffix(p.Name, "proj.weight") || p.Frozen != (i > 6) {
			t.Errorf("%+v", *p)
		}
	}
	if p := b.Params(); p[0].Init != graph.Ones() || p[1].Init != graph.Zeros() || p[2].Init != graph.Gaussian(0.02) || p[4].Init != graph.Gaussian(0.02) {
		t.Errorf("%+v %+v %+v", *p[0], *p[1], *p[2])
	}
	b.Loss(b.Sum(y))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	var eps []float64
	var masks, forms []string
	for _, c := range g.Calls {
		switch c.Kind {
		case npu.LayerNorm:
			eps = append(eps, c.Attrs.Float("eps", 0))
		case npu.Attention:
			masks = append(masks, fmt.Sprint(c.Attrs["causal"], c.Attrs["seg"]))
		case npu.Gelu:
			forms = append(forms, c.Attrs.Str("approximate"))
		}
	}
	if !slices.Equal(eps, []float64{1e-6, 1e-5, 1e-5}) || !slices.Equal(masks, []string{"false true", "false false"}) ||
		!slices.Equal(forms, []string{"none", "tanh"}) {
		t.Errorf("eps %v, causal and segments %v, forms %v", eps, masks, forms)
	}
}

// TestGradients checks whole stacks, batch norm and dropout in training included.
func TestGradients(t *testing.T) {
	for name, l := range map[string]nn.Layer{
		"cnn": nn.Sequential{nn.Conv2D{Out: 2, Kernel: 3, Pad: 1, Bias: true}, nn.BatchNorm{}, nn.Gelu, nn.Residual{Body: nn.Conv2D{Out: 2, Kernel: 1}},
			nn.GlobalAvgPool, nn.Linear{Out: 3}},
		"transformer": nn.Sequential{
			nn.Func(func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Reshape(x, 1, 3, 9) }), nn.Linear{Out: 4},
			nn.Residual{Body: nn.Sequential{nn.LayerNorm{}, nn.MultiHeadAttention{Heads: 2, Mask: graph.Attention{Causal: true}}}},
			nn.Residual{Body: nn.Sequential{nn.LayerNorm{}, nn.MLP{Hidden: []int{5}, Out: 4, Act: nn.Gelu}}}, nn.LayerNorm{NoBias: true}, nn.GeluTanh,
		},
		"mlp": nn.Sequential{nn.Flatten, nn.MLP{Hidden: []int{4, 4}, Out: 2, Act: nn.Tanh}, nn.Dropout(0.3), nn.Silu, nn.Sigmoid},
	} {
		b := graph.New()
		y := l.Apply(b, "net", b.Input("x", npu.F32, 3, 1, 3, 3))
		b.Loss(b.Sum(b.Mul(y, b.Input("w", npu.F32, b.Desc(y).Shape...))))
		g, err := b.Lower()
		if err != nil {
			t.Fatal(err)
		}
		if err := graphtest.CheckGrads(g, map[string][]float64{graph.SeedInput: {7}}, 1e-6); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := graph.New()
	y := nn.Sequential{nn.Embedding{Vocab: 4, Dim: 3}, nn.Residual{Body: nn.RMSNorm{}}, nn.Linear{Out: 2}}.Apply(b, "net", b.Input("ids", npu.I32, 5))
	b.Loss(b.Sum(b.Mul(y, b.Input("w", npu.F32, 5, 2))))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	if err := graphtest.CheckGrads(g, map[string][]float64{"ids": {3, 0, 3, 1, 3}}, 1e-6); err != nil {
		t.Errorf("tokens: %v", err)
	}
}

func TestFrozen(t *testing.T) {
	b := graph.New()
	x := b.Input("x", npu.F32, 2, 3, 4, 4)
	x = nn.Sequential{
		nn.Conv2D{Out: 2, Kernel: 1, Bias: true, Frozen: true},
		nn.BatchNorm{Frozen: true},
		nn.GlobalAvgPool,
		nn.Linear{Out: 2, Frozen: true},
		nn.Linear{Out: 1},
	}.Apply(
		b,
		"n",
		x,
	)
	b.Loss(b.Sum(x))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range g.Trained {
		if name := g.Values[tr.Param].Name; (tr.Grad != plan.None) != strings.HasPrefix(name, "n.4.") {
			t.Errorf("%s has a gradient: %t", name, tr.Grad != plan.None)
		}
	}
	for _, c := range g.Calls {
		if c.Kind == npu.BatchNorm || c.Kind == npu.Conv2DBwdData {
			t.Errorf("frozen layers still run %s", c.Kind)
		}
	}
}

func TestErrorsNameTheLayer(t *testing.T) {
	for want, l := range map[string]nn.Layer{
		"net.1: 4 input channels do not divide into 3 groups": nn.Conv2D{Out: 3, Kernel: 1, Groups: 3},
		"net.1: batchnorm: x has rank 3": nn.Sequential{nn.Func(func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Reshape(x,
				2, 4, -1)
		})},
		"net.1: \"net.1.weight\": shape [0 8]":   nn.Linear{Out: 0},
		"net.1: embedding: ids is f32, want i32": nn.Embedding{Vocab: 3, Dim: 2},
		"net.1: attention of a tensor of rank 4": nn.MultiHeadAttention{Heads: 2},
		"net.1: 8 channels do not divide into 3 heads": nn.Named(func(b *graph.Builder, name string, x *graph.Node) *graph.Node {
			return nn.MultiHeadAttention{Heads: 3}.Apply(b, name, b.Reshape(x, 2, -1, 8))
		}),
	} {
		b := graph.New()
		x := b.Input("x", npu.F32, 2, 4, 8, 8)
		nn.Sequential{nn.Relu, l}.Apply(b, "net", x)
		if _, ok := l.(nn.Sequential); ok {
			b = graph.New()
			x = b.Reshape(b.Input("x", npu.F32, 2, 4, 8, 8), 2, 4, -1)
			nn.Sequential{nn.Relu, nn.BatchNorm{}}.Apply(b, "net", x)
		}
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
