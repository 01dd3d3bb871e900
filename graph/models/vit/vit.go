package vit

import (
	"strconv"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/npu"
)

// Build adds the network to b and returns the logits [N Classes] for images x [N C H W], whose sides are multiples of the patch. An error is b's sticky one.
func Build(b *graph.Builder, x *graph.Node, cfg Config) *graph.Node {
	c, err := cfg.check()
	if err != nil {
		b.Failf("%w", err)
		return x
	}
	m := model{c, b, graph.Gaussian(c.InitStd)}
	x = m.tokens(x)
	norm := "norm"
	if c.Mean {
		x, norm = b.Mean(b.Slice(x, 1, c.prefix(), b.Dim(x, 1)), 1), "fc_norm"
	} else { // the norm is one of each token, so the others need none
		x = b.Reshape(b.Slice(x, 1, 0, 1), -1, c.Dim)
	}
	return m.linear("head", nn.LayerNorm{Eps: c.Eps}.Apply(b, norm, x), c.Classes)
}

// Tokens adds the network without its last norm and classifier and returns the tokens [N 1+P Dim], the class token first: features for a custom head.
func Tokens(b *graph.Builder, x *graph.Node, cfg Config) *graph.Node {
	c, err := cfg.check()
	if err != nil {
		b.Failf("%w", err)
		return x
	}
	return model{c, b, graph.Gaussian(c.InitStd)}.tokens(x)
}

// model builds one network.
type model struct {
	Config
	b    *graph.Builder
	init graph.Init // of positions and of the weights of linear layers
}

func (m model) tokens(x *graph.Node) *graph.Node {
	b := m.b
	x = m.embed(x)
	b.In("blocks", func() {
		for i := range m.Depth {
			b.Block(strconv.Itoa(i), func() { x = m.block(x, m.DropPath*float64(i)/float64(max(m.Depth-1, 1))) })
		}
	})
	return x
}

// embed makes tokens of patches, and adds the class token and the positions.
func (m model) embed(x *graph.Node) *graph.Node {
	b := m.b
	if s := b.Desc(x).Shape; b.Err() == nil && (len(s) != 4 || s[2]%m.Patch != 0 || s[3]%m.Patch != 0) {
		b.Failf("vit: pictures %v do not divide into patches of %d pixels", s, m.Patch)
		return x
	}
	n, patches := b.Dim(x, 0), b.Dim(x, 2)/m.Patch*(b.Dim(x, 3)/m.Patch)
	var class *graph.Node
	if !m.NoToken {
		class = b.Param("cls_token", npu.Shape{1, 1, m.Dim}, graph.Gaussian(1e-6), graph.NoDecay())
	}
	places := b.Param("pos_embed", npu.Shape{1, m.prefix() + patches, m.Dim}, m.init, graph.NoDecay())
	b.In("patch_embed", func() {
		x = nn.Conv2D{Out: m.Dim, Kernel: m.Patch, Stride: m.Patch, Bias: true}.Apply(b, "proj", x)
	})
	x = b.Transpose(b.Reshape(x, n, m.Dim, patches), 0, 2, 1)
	if class != nil {
		x = b.Concat(1, b.BroadcastTo(class, n, 1, m.Dim), x)
	}
	return b.Dropout(b.Add(x, places), m.Dropout)
}

// block is x + attention(norm(x)), then x + feed_forward(norm(x)).
func (m model) block(x *graph.Node, drop float64) *graph.Node {
	b := m.b
	add := func(y *graph.Node) { x = b.Add(m.dropPath(b.Dropout(y, m.Dropout), drop), x) }
	y := nn.LayerNorm{Eps: m.Eps}.Apply(b, "norm1", x)
	b.In("attn", func() { add(m.linear("proj", m.attend(y), m.Dim)) })
	y = nn.LayerNorm{Eps: m.Eps}.Apply(b, "norm2", x)
	b.In("mlp", func() {
		y = b.Dropout(b.Gelu(m.linear("fc1", y, m.hidden())), m.Dropout)
		add(m.linear("fc2", y, m.Dim))
	})
	return x
}

// attend lets every token see every token. Queries, keys and values have one weight, as in timm, which is cut instead of their product: it is smaller.
func (m model) attend(x *graph.Node) *graph.Node {
	b := m.b
	var parts [3]*graph.Node
	b.In("qkv", func() {
		w := b.Param("weight", npu.Shape{3 * m.Dim, m.Dim}, m.init)
		var bias *graph.Node
		if !m.NoQKV {
			bias = b.Param("bias", npu.Shape{3 * m.Dim}, graph.Zeros(), graph.NoDecay())
		}
		for i := range parts {
			lo, hi, part := i*m.Dim, (i+1)*m.Dim, bias
			if part != nil {
				part = b.Slice(bias, 0, lo, hi)
			}
			parts[i] = b.Reshape(b.Linear(x, b.Slice(w, 0, lo, hi), part), b.Dim(x, 0), b.Dim(x, 1), m.Heads, m.Dim/m.Heads)
		}
	})
	return b.Reshape(b.Attention(parts[0], parts[1], parts[2], graph.Attention{}), b.Dim(x, 0), b.Dim(x, 1), m.Dim)
}

// linear is a dense layer whose bias starts with zeros.
func (m model) linear(name string, x *graph.Node, out int) (y *graph.Node) {
	m.b.In(name, func() {
		w := m.b.Param("weight", npu.Shape{out, m.b.Dim(x, -1)}, m.init)
		y = m.b.Linear(x, w, m.b.Param("bias", npu.Shape{out}, graph.Zeros(), graph.NoDecay()))
	})
	return y
}

// dropPath drops whole samples of a branch.
func (m model) dropPath(x *graph.Node, p float64) *graph.Node {
	if p == 0 || !m.b.Training() {
		return x
	}
	return m.b.Mul(x, m.b.Dropout(m.b.Const(npu.F32, 1, m.b.Dim(x, 0), 1, 1), p))
}
