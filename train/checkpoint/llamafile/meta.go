package llamafile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"

	"github.com/gotrain/gotrain/train/foreign"
)

// metaParams is Meta's params.json.
type metaParams struct {
	Dim        *int     `json:"dim"`
	Layers     *int     `json:"n_layers"`
	Heads      *int     `json:"n_heads"`
	KVHeads    *int     `json:"n_kv_heads,omitempty"`
	Vocab      *int     `json:"vocab_size"`
	Multiple   *int     `json:"multiple_of"`
	Multiplier *float64 `json:"ffn_dim_multiplier,omitempty"`
	NormEps    *float64 `json:"norm_eps"`
	Theta      *pyFloat `json:"rope_theta,omitempty"`
	Scaled     *bool    `json:"use_scaled_rope,omitempty"`
}

// The metadata of the file carry what params.json cannot express; readers that do not know them lose only limits and ids.
const (
	metaContext = "gotrain.context"
	metaBOS     = "gotrain.bos"
	metaEOS     = "gotrain.eos"
	metaFactor  = "gotrain.rope_factor"
)

// fromMeta opens tensors with Meta's names and Meta's order of the rows of q and k.
func fromMeta(set *safetensors.Set, dir string, config *llama.Config) (*model, error) {
	m := &model{format: "meta"}
	raw, err := foreign.ReadFile(filepath.Join(dir, ParamsFile), maxConfig)
	switch {
	case err == nil:
		_, f, _ := set.Lookup("tok_embeddings.weight")
		if m.cfg, err = parseParams(raw, dims(set), f.Metadata()); err != nil {
			return nil, fmt.Errorf("%s: %w", ParamsFile, err)
		}
	case !os.IsNotExist(err):
		return nil, err
	case config == nil:
		return nil, fmt.Errorf("%w: there is no %s\nhint: put one next to the weights, or describe them with --config", ErrNoConfig, ParamsFile)
	default:
		m.cfg = *config
	}
	return m, m.find(set, func(p param) string { return p.meta }, true)
}

// parseParams reads params.json. What it leaves open comes from the shapes (feed-forward width, a vocabulary of -1, tied or not), from the metadata,
// or from the published model of the same shape (context, ids, and the factor of scaled rope, which Meta keeps in code).
func parseParams(raw []byte, shapes map[string][]int, meta map[string]string) (llama.Config, error) {
	var c llama.Config
	var p metaParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return c, err
	}
	if err := errors.Join(refuseForeign(raw)...); err != nil {
		return c, err
	}
	for name, v := range map[string]*int{"dim": p.Dim, "n_layers": p.Layers, "n_heads": p.Heads} {
		if v == nil {
			return c, fmt.Errorf("%s is missing", name)
		}
	}
	c = llama.Config{Dim: *p.Dim, Layers: *p.Layers, Heads: *p.Heads, KVHeads: or(p.KVHeads, *p.Heads), Vocab: or(p.Vocab, -1), BOS: 1, EOS: 2}
	c.NormEps, c.Theta = or(p.NormEps, 1e-5), float64(or(p.Theta, 10000))
	if s := shapes["layers.0.feed_forward.w1.weight"]; len(s) == 2 {
		c.Hidden = s[0]
	}
	if c.Dim > 0 && c.Dim < 1<<28 && p.Multiple != nil {
		f := or(p.Multiplier, 0)
		if *p.Multiple < 1 || *p.Multiple > 1<<28 || math.IsNaN(f) || f < 0 || f > 1<<20 {
			return c, fmt.Errorf("multiple_of %d and ffn_dim_multiplier %g give no valid feed-forward width", *p.Multiple, f)
		}
		if h := llama.FeedForward(c.Dim, f, *p.Multiple); h != c.Hidden {
			return c, fmt.Errorf("multiple_of and ffn_dim_multiplier give a feed-forward width of %d, but the tensors have %d", h, c.Hidden)
		}
	}
	if s := shapes["tok_embeddings.weight"]; c.Vocab == -1 && len(s) == 2 {
		c.Vocab = s[0] // Llama 2 leaves it to the tokenizer
	}
	_, head := shapes["output.weight"]
	c.Tied = !head
	scaled := or(p.Scaled, false)
	if scaled {
		c.Scaling = llama.Scaling{Factor: 8, LowFreq: 1, HighFreq: 4, Original: 8192} // Llama 3.1, arXiv 2407.21783
	}
	published(&c)
	return c, errors.Join(fromMetadata(&c, meta, scaled), limits(c))
}

// published fills in what params.json cannot express from the published model of that shape.
func published(c *llama.Config) {
	c.Context = 2048
	for _, name := range llama.Names() {
		p, _ := llama.Named(name)
		if p.Dim == c.Dim && p.Layers == c.Layers && p.Heads == c.Heads && p.KVHeads == c.KVHeads && p.Vocab == c.Vocab && p.Theta == c.Theta &&
			p.Scaling.On() == c.Scaling.On() {
			c.Context, c.BOS, c.EOS, c.Scaling = p.Context, p.BOS, p.EOS, p.Scaling
		}
	}
}

func fromMetadata(c *llama.Config, meta map[string]string, scaled bool) error {
	for key, to := range map[string]*int{metaContext: &c.Context, metaBOS: &c.BOS, metaEOS: &c.EOS} {
		if s, ok := meta[key]; ok {
			v, err := strconv.Atoi(s)
			if err != nil {
				return fmt.Errorf("metadata %s: %w", key, err)
			}
			*to = v
		}
	}
	if s, ok := meta[metaFactor]; ok && scaled {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || v <= 1 {
			return fmt.Errorf("metadata %s is %q, must be greater than 1", metaFactor, s)
		}
		c.Scaling.Factor = v
	}
	return nil
}

// encodeParams makes params.json, and the metadata for what it cannot express.
func encodeParams(c llama.Config) (raw []byte, meta map[string]string, err error) {
	if c.Head()*c.Heads != c.Dim {
		return nil, nil, fmt.Errorf("%[4]s cannot express %[1]d heads of width %[2]d in a width of %[3]d", c.Heads, c.Head(), c.Dim, ParamsFile)
	}
	multiple, factor := feedForwardRule(c.Dim, c.Hidden)
	p := metaParams{Dim: &c.Dim, Layers: &c.Layers, Heads: &c.Heads, KVHeads: &c.KVHeads, Vocab: &c.Vocab, Multiple: &multiple, NormEps: &c.NormEps}
	if factor != 0 {
		p.Multiplier = &factor
	}
	if theta := pyFloat(c.Theta); theta != 10000 { // Llama 2's own reader refuses the key
		p.Theta = &theta
	}
	meta = map[string]string{"format": "pt", metaContext: strconv.Itoa(c.Context), metaBOS: strconv.Itoa(c.BOS), metaEOS: strconv.Itoa(c.EOS)}
	if s := c.Scaling; s.On() {
		if s.LowFreq != 1 || s.HighFreq != 4 || s.Original != 8192 {
			return nil, nil, fmt.Errorf("%[2]s cannot express the rope scaling %+[1]v, only that of Llama 3.1", s, ParamsFile)
		}
		on := true
		p.Scaled = &on
		meta[metaFactor] = strconv.FormatFloat(s.Factor, 'g', -1, 64)
	}
	raw, err = indent(p)
	return raw, meta, err
}

// feedForwardRule finds the roundest numbers from which Meta's rule gives a feed-forward width.
func feedForwardRule(dim, hidden int) (multiple int, factor float64) {
	for _, f := range []float64{0, 1.3, 1.5} {
		for m := 4096; m >= 1; m /= 2 {
			if llama.FeedForward(dim, f, m) == hidden {
				return m, f
			}
		}
	}
	return 1, (float64(hidden) + 0.5) / float64(8*dim/3) // the half keeps the rule's rounding towards zero off the edge
}
