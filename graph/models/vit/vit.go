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
	rates := nn.DropPathRates(m.DropPath, m.Depth)
	b.In("blocks", func() {
		for i := range m.Depth {
			b.Block(strconv.Itoa(i), func() { x = m.block(x, rates[i]) })
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
	add := func(y *graph.Node) { x = b.Add(b.DropPath(b.Dropout(y, m.Dropout), drop), x) }
	y := nn.LayerNorm{Eps: m.Eps}.Apply(b, "norm1", x)
	b.In("attn", func() { add(m.linear("proj", m.attend(y), m.Dim)) })
	y = nn.LayerNorm{Eps: m.Eps}.Apply(b, "norm2", x)
	b.In("mlp", func() {
		y = b.Dropout(b.Gelu(m.linear("fc1", y, m.hidden())), m.Dropout)
		add(m.linear("fc2", y, m.Dim))
	})
	return x
}

// attend lets every token see every token. Queries, keys and values come from one product, as in timm.
func (m model) attend(x *graph.Node) *graph.Node {
	b := m.b
	n, tokens := b.Dim(x, 0), b.Dim(x, 1)
	qkv := m.dense("qkv", x, 3*m.Dim, !m.NoQKV)
	part := func(i int) *graph.Node {
		return b.Reshape(b.Slice(qkv, 2, i*m.Dim, (i+1)*m.Dim), n, tokens, m.Heads, m.Dim/m.Heads)
	}
	return b.Reshape(b.Attention(part(0), part(1), part(2), graph.Attention{}), n, tokens, m.Dim)
}

func (m model) linear(name string, x *graph.Node, out int) *graph.Node {
	return m.dense(name, x, out, true)
}

// dense is a dense layer whose bias starts with zeros.
func (m model) dense(name string, x *graph.Node, out int, bias bool) (y *graph.Node) {
	m.b.In(name, func() {
		w := m.b.Param("weight", npu.Shape{out, m.b.Dim(x, -1)}, m.init)
		var shift *graph.Node
		if bias {
			shift = m.b.Param("bias", npu.Shape{out}, graph.Zeros(), graph.NoDecay())
		}
		y = m.b.Linear(x, w, shift)
	})
	return y
}
