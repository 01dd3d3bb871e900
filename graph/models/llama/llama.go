package llama

import (
	"math"
	"strconv"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// Weights says how parameters start. The zero value is the usual one: normal with deviation 0.02 (Hugging Face's initializer_range), and the
// projections back into the residual stream by 1/√(2·layers) less, as GPT-2 introduced it and torchtitan does it too.
type Weights struct {
	Std     float64 // 0: 0.02
	NoDepth bool    // the projections back start like all others
}

// Batch is what a Llama reads. Tokens is i32[B S]; Segments, i32[B S] or nil, keeps documents in a sequence apart: a token attends only to
// tokens of the same segment.
type Batch struct{ Tokens, Segments *graph.Node }

// Loss adds the network and the cross-entropy of its prediction of targets i32[B S]; targets of -100 do not count. It gives the sum over the
// tokens that count, and their number. The logits are never held as a whole.
func (c Config) Loss(b *graph.Builder, in Batch, targets *graph.Node, w Weights) (loss, count *graph.Node) {
	m := c.start(b, w)
	x, head := m.network(in)
	return b.LinearCrossEntropy(x, head, b.Reshape(targets, -1))
}

// Logits adds the network up to the logits [B S V]. For training use Loss.
func (c Config) Logits(b *graph.Builder, in Batch, w Weights) *graph.Node {
	m := c.start(b, w)
	x, head := m.network(in)
	s := b.Desc(in.Tokens).Shape
	return b.Reshape(b.Linear(x, head, nil), s[0], s[1], c.Vocab)
}

// model builds one Llama. Activations are [B·S D]; only attention sees sequences and heads.
type model struct {
	Config
	b          *graph.Builder
	init, back graph.Init
	rotary     graph.Rotary
	attend     func(layer int, q, k, v *graph.Node) *graph.Node
	rows, seq  int // batch and tokens of each
}

func (c Config) start(b *graph.Builder, w Weights) *model {
	if err := c.Check(); err != nil {
		b.Failf("%w", err)
	}
	std := w.Std
	if std == 0 {
		std = 0.02
	}
	m := &model{Config: c, b: b, init: graph.Gaussian(std), back: graph.Gaussian(std / math.Sqrt(2*float64(max(c.Layers, 1))))}
	if w.NoDepth {
		m.back = m.init
	}
	m.rotary = graph.Rotary{Theta: c.Theta, Factor: c.Scaling.Factor, Low: c.Scaling.LowFreq, High: c.Scaling.HighFreq, Original: c.Scaling.Original}
	return m
}

// network is everything but the last linear layer, whose weight it returns too.
func (m *model) network(in Batch) (x, head *graph.Node) {
	m.attend = func(_ int, q, k, v *graph.Node) *graph.Node {
		return m.b.Attention(m.b.Rope(q, nil, m.rotary), m.b.Rope(k, nil, m.rotary), v, graph.Attention{Causal: true, Segments: in.Segments})
	}
	return m.body(in.Tokens)
}

func (m *model) body(tokens *graph.Node) (x, head *graph.Node) {
	b := m.b
	m.rows, m.seq = b.Dim(tokens, 0), b.Dim(tokens, 1)
	var table *graph.Node
	b.In("model", func() {
		b.In("embed_tokens", func() {
			table = m.weight(m.Vocab, m.Dim, m.init)
			x = b.Embedding(b.Reshape(tokens, -1), table)
		})
		b.In("layers", func() {
			for i := range m.Layers {
				b.Block(strconv.Itoa(i), func() { x = m.layer(i, x) })
			}
		})
		x = m.norm("norm", x)
	})
	if m.Tied {
		return x, table
	}
	b.In("lm_head", func() { head = m.weight(m.Vocab, m.Dim, m.init) })
	return x, head
}

// layer is x + attention(norm(x)), then x + feed_forward(norm(x)).
func (m *model) layer(i int, x *graph.Node) *graph.Node {
	b, hd := m.b, m.Head()
	h := m.norm("input_layernorm", x)
	b.In("self_attn", func() {
		q := m.heads(m.linear("q_proj", h, m.Heads*hd, m.init), m.Heads)
		k := m.heads(m.linear("k_proj", h, m.KVHeads*hd, m.init), m.KVHeads)
		v := m.heads(m.linear("v_proj", h, m.KVHeads*hd, m.init), m.KVHeads)
		o := b.Reshape(m.attend(i, q, k, v), -1, m.Heads*hd)
		x = b.Add(m.linear("o_proj", o, m.Dim, m.back), x)
	})
	h = m.norm("post_attention_layernorm", x)
	b.In("mlp", func() {
		y := b.SwiGLU(m.linear("gate_proj", h, m.Hidden, m.init), m.linear("up_proj", h, m.Hidden, m.init))
		x = b.Add(m.linear("down_proj", y, m.Dim, m.back), x)
	})
	return x
}

// heads cuts [B·S n·D] into [B S n D].
func (m *model) heads(x *graph.Node, n int) *graph.Node {
	return m.b.Reshape(x, m.rows, m.seq, n, m.Head())
}

func (m *model) linear(name string, x *graph.Node, out int, init graph.Init) (y *graph.Node) {
	m.b.In(name, func() { y = m.b.Linear(x, m.weight(out, m.b.Dim(x, -1), init), nil) })
	return y
}

func (m *model) weight(out, in int, init graph.Init) *graph.Node {
	return m.b.Param("weight", npu.Shape{out, in}, init)
}

func (m *model) norm(name string, x *graph.Node) (y *graph.Node) {
	m.b.In(name, func() {
		y = m.b.RMSNorm(x, m.b.Param("weight", npu.Shape{m.Dim}, graph.Ones(), graph.NoDecay()), m.NormEps)
	})
	return y
}
