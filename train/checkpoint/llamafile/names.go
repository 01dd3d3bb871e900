package llamafile

import (
	"fmt"
	"math"
	"strings"

	"github.com/gotrain/gotrain/graph/models/llama"
)

// part is one tensor of a Llama, in the order in which the network uses them.
type part struct {
	hf, meta string // within a layer: after "model.layers.N." and "layers.N."
	shape    func(c llama.Config) []int
	heads    func(c llama.Config) int // for a projection whose rows the rotary embedding pairs; nil: none
}

var (
	vector = func(c llama.Config) []int { return []int{c.Dim} }
	table  = func(c llama.Config) []int { return []int{c.Vocab, c.Dim} }
	up     = func(c llama.Config) []int { return []int{c.Hidden, c.Dim} }

	before = []part{{hf: embedName, meta: "tok_embeddings.weight", shape: table}}
	layer  = []part{
		{hf: "input_layernorm.weight", meta: "attention_norm.weight", shape: vector},
		{"self_attn.q_proj.weight", "attention.wq.weight",
			func(c llama.Config) []int { return []int{c.Heads * c.Head(), c.Dim} }, func(c llama.Config) int { return c.Heads }},
		{"self_attn.k_proj.weight", "attention.wk.weight",
			func(c llama.Config) []int { return []int{c.KVHeads * c.Head(), c.Dim} }, func(c llama.Config) int { return c.KVHeads }},
		{hf: "self_attn.v_proj.weight", meta: "attention.wv.weight", shape: func(c llama.Config) []int { return []int{c.KVHeads * c.Head(), c.Dim} }},
		{hf: "self_attn.o_proj.weight", meta: "attention.wo.weight", shape: func(c llama.Config) []int { return []int{c.Dim, c.Heads * c.Head()} }},
		{hf: "post_attention_layernorm.weight", meta: "ffn_norm.weight", shape: vector},
		{hf: "mlp.gate_proj.weight", meta: "feed_forward.w1.weight", shape: up},
		{hf: "mlp.up_proj.weight", meta: "feed_forward.w3.weight", shape: up},
		{hf: "mlp.down_proj.weight", meta: "feed_forward.w2.weight", shape: func(c llama.Config) []int { return []int{c.Dim, c.Hidden} }},
	}
	after = []part{
		{hf: "model.norm.weight", meta: "norm.weight", shape: vector},
		{hf: headName, meta: "output.weight", shape: table},
	}
)

const (
	embedName = "model.embed_tokens.weight"
	headName  = "lm_head.weight"
)

// param is one tensor of a given model.
type param struct {
	name, meta string
	shape      []int
	heads      int // 0: the rows are not paired
}

// params lists the tensors of a configuration that passed limits; a tied last layer is not listed.
func params(c llama.Config) []param {
	out := make([]param, 0, len(layer)*c.Layers+3)
	add := func(hfPrefix, metaPrefix string, parts []part) {
		for _, p := range parts {
			if p.hf == headName && c.Tied {
				continue
			}
			q := param{hfPrefix + p.hf, metaPrefix + p.meta, p.shape(c), 0}
			if p.heads != nil {
				q.heads = p.heads(c)
			}
			out = append(out, q)
		}
	}
	add("", "", before)
	for i := range c.Layers {
		add(fmt.Sprintf("model.layers.%d.", i), fmt.Sprintf("layers.%d.", i), layer)
	}
	add("", "", after)
	return out
}

// Names lists the parameters of a configuration that passes its Check, by Hugging Face's names, in the order in which the network uses them.
func Names(c llama.Config) []string {
	var out []string
	for _, p := range params(c) {
		out = append(out, p.name)
	}
	return out
}

// limits rejects impossible sizes before they are multiplied or lists are made; then it runs the configuration's own check.
func limits(c llama.Config) error {
	const most, layers = 1 << 28, 1 << 16
	for _, d := range []struct {
		name string
		v    int
		max  int
	}{{"dim", c.Dim, most}, {"hidden", c.Hidden, most}, {"layers", c.Layers, layers}, {"heads", c.Heads, 1 << 20}, {"kv_heads", c.KVHeads, 1 << 20},
		{"head_dim", c.HeadDim, 1 << 20}, {"vocab", c.Vocab, most}, {"context", c.Context, most}} {
		if d.v > d.max {
			return fmt.Errorf("%s is %d, but the limit is %d", d.name, d.v, d.max)
		}
		if d.v < 0 {
			return fmt.Errorf("%s is %d, must be at least 1", d.name, d.v)
		}
	}
	for name, v := range map[string]float64{"theta": c.Theta, "norm_eps": c.NormEps, "scaling factor": c.Scaling.Factor} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %g", name, v)
		}
	}
	if err := c.Check(); err != nil {
		return err
	}
	d, head, l := float64(c.Dim), float64(c.Head()), float64(c.Layers)
	if n := l*d*(head*float64(c.Heads+c.KVHeads)+float64(c.Hidden)) + d*float64(c.Vocab); n > 1<<55 {
		return fmt.Errorf("a model of about %.2g parameters is not possible", n)
	}
	return nil
}

// ignored reports whether a tensor of a file is not a parameter: rotary tables that old writers stored, which follow from the configuration.
func ignored(name string) bool {
	return strings.HasSuffix(name, "rotary_emb.inv_freq") || name == "rope.freqs"
}
