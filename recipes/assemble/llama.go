package assemble

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Llama returns the configuration of a recipe's network. tokens describes the token ids and may be empty: its vocabulary is used if the recipe sets
// neither a size nor a vocabulary, and the model's vocabulary must not be smaller.
func Llama(r *recipes.Recipe, tokens text.Info) (llama.Config, error) {
	if f, err := familyOf(r); err != nil {
		return llama.Config{}, err
	} else if f.llama == nil {
		return llama.Config{}, fmt.Errorf("recipes: model.name = %q is not a llama", r.Model.Name)
	}
	return llamaConfig(r, tokens)
}

func llamaConfig(r *recipes.Recipe, tokens text.Info) (llama.Config, error) {
	l, vocab := recipes.Keys[llama.Keys](r), tokens.Vocab
	c := llama.Config{Theta: 1e4, NormEps: 1e-5, Tied: true, BOS: -1, EOS: -1, Vocab: vocab}
	var err error
	switch {
	case l.Size != "":
		c, err = llama.Named(l.Size)
	case l.Dim == 0 && r.Model.InitFrom != "": // the weights come with their dimensions
		c, err = configOf(r)
	}
	if err != nil {
		return c, err
	}
	over := func(p *int, v int) {
		if v > 0 {
			*p = v
		}
	}
	over(&c.Dim, l.Dim)
	over(&c.Layers, l.Layers)
	over(&c.Heads, l.Heads)
	over(&c.HeadDim, l.HeadDim)
	over(&c.Vocab, l.Vocab)
	over(&c.Context, l.Context)
	c.Hidden = cmp.Or(l.Hidden, c.Hidden, llama.FeedForward(c.Dim, 0, 32))
	c.KVHeads = cmp.Or(l.KVHeads, c.KVHeads, c.Heads)
	c.Context = cmp.Or(c.Context, r.Text.Sequence)
	if l.RopeTheta > 0 {
		c.Theta = l.RopeTheta
	}
	if l.NormEps > 0 {
		c.NormEps = l.NormEps
	}
	if l.RopeFactor > 0 {
		c.Scaling = llama.Scaling{Factor: l.RopeFactor, LowFreq: l.RopeLow, HighFreq: l.RopeHigh, Original: l.RopeOriginal}
	}
	if l.Tied != "auto" {
		c.Tied = l.Tied == "true"
	}
	if tokens.Tokenizer != "" {
		c.BOS, c.EOS = int(tokens.BOS), int(tokens.EOS)
	}
	if c.Vocab == 0 {
		return c, fmt.Errorf("recipes: llama.vocab is not set, and the data do not give the size of the vocabulary\nhint: set llama.vocab")
	}
	if c.Vocab < vocab {
		return c, fmt.Errorf(
			"recipes: the model has a vocabulary of %d, but the tokenizer has %d tokens\nhint: set llama.vocab = %d, or use the model's own tokenizer",
			c.Vocab,
			vocab,
			vocab,
		)
	}
	if n := r.Text.Sequence; n > c.Context {
		return c, fmt.Errorf("recipes: text.sequence = %d exceeds the model's context of %d\nhint: also set llama.context = %d", n, c.Context, n)
	}
	return c, c.Check()
}

// Sequence returns the number of tokens per sample.
func Sequence(r *recipes.Recipe) (int, error) {
	if r.Text.Sequence > 0 {
		return r.Text.Sequence, nil
	}
	c, err := llamaConfig(r, text.Info{Vocab: 1}) // only the context matters here
	if c.Context > 0 {
		return c.Context, nil
	}
	return 0, err
}

// llamaModel builds a Llama with next-token cross-entropy.
func llamaModel(r *recipes.Recipe, src data.Source) (train.Model, error) {
	c, err := llamaConfig(r, infoOf(src))
	if err != nil {
		return nil, err
	}
	seq, err := Sequence(r)
	if err != nil {
		return nil, err
	}
	k := recipes.Keys[llama.Keys](r)
	w := llama.Weights{Std: k.InitStd, NoDepth: !k.InitDepth}
	return func(b *graph.Builder, in train.Inputs) train.Outputs {
		loss, count := c.Loss(b, llama.Batch{Tokens: in["tokens"], Segments: in["segments"]}, in["targets"], w)
		return train.Outputs{Loss: loss, Count: count, Items: train.Items{Name: "tokens", Short: "tok", PerSample: seq, Likelihood: true}}
	}, nil
}

// flops is the arithmetic per token by PaLM's formula, which Llama trainers report, with the parameters that take part in matrix products.
func flops(c llama.Config, seq int) *telemetry.FLOPs {
	n := c.Params()
	if !c.Tied { // the lookup is not a product; a tied table is also used in one, at the output
		n -= int64(c.Vocab) * int64(c.Dim)
	}
	f := telemetry.PaLMFLOPs(float64(n), c.Layers, c.Heads, c.Head(), seq)
	return &f
}

// configOf reads the configuration that comes with the initial weights. A resumed run no longer needs them: its checkpoints hold the same configuration.
func configOf(r *recipes.Recipe) (llama.Config, error) {
	at, err := weightsPath(r)
	if err != nil {
		if at = own(r); at == "" {
			return llama.Config{}, noWeights(r, err)
		}
	}
	m, err := llamafile.Open(at)
	if errors.Is(err, llamafile.ErrNoConfig) {
		return llama.Config{}, fmt.Errorf("recipes: model.init_from: %w\nhint: alternatively, set llama.size", err)
	}
	if err != nil {
		return llama.Config{}, launch.WithCode(launch.ExitNoInput, fmt.Errorf("recipes: model.init_from: %w", err))
	}
	defer m.Close()
	return m.Config(), nil
}

// llamaWeights opens weights of any format for a model. Settings that shapes do not determine must match too, or results would be silently wrong.
func llamaWeights(want llama.Config) func(path string) (train.Weights, error) {
	return func(path string) (train.Weights, error) {
		m, err := llamafile.Open(path)
		if errors.Is(err, llamafile.ErrNoConfig) {
			return train.OpenWeights(path)
		}
		if err != nil {
			return nil, err
		}
		has := m.Config()
		for _, d := range []struct {
			key       string
			has, want any
		}{
			{"heads", has.Heads, want.Heads}, {"kv_heads", has.KVHeads, want.KVHeads}, {"rope_theta", has.Theta, want.Theta},
			{"norm_eps", has.NormEps, want.NormEps}, {"rope_factor", has.Scaling, want.Scaling},
		} {
			if d.has != d.want {
				m.Close()
				return nil, fmt.Errorf(
					"%s has %s = %v, but the model has %v\nhint: set llama.%s, or remove llama.size to use the weights' own configuration",
					path,
					d.key,
					d.has,
					d.want,
					d.key,
				)
			}
		}
		return m, nil
	}
}

// llamaFiles configures how weights are read, which files accompany them in checkpoints, and how FLOPs are counted.
func llamaFiles(r *recipes.Recipe, c *train.Config) error {
	tokens := infoOf(c.Data)
	model, err := llamaConfig(r, tokens)
	if err != nil {
		return err
	}
	seq, err := Sequence(r)
	if err != nil {
		return err
	}
	c.FLOPs = flops(model, seq)
	if c.Beside, err = beside(r, model, tokens.Tokenizer); err != nil {
		return err
	}
	c.Weights = llamaWeights(model)
	if c.InitFrom != "" && !resumes(r) {
		if c.InitFrom, err = weightsPath(r); err != nil {
			return err
		}
		w, err := c.Weights(c.InitFrom) // detect a mismatch before ranks connect
		if err != nil {
			return fmt.Errorf("recipes: model.init_from: %w", err)
		}
		return w.Close()
	}
	return nil
}

func llamaSample(r *recipes.Recipe, _ data.Source) (string, error) {
	n, err := Sequence(r)
	return "of " + amount.Count(n) + " tokens", err
}

// llamaPlanned drops the initial weights, unless only they define the model.
func llamaPlanned(r *recipes.Recipe) (taken, lacks []string) {
	switch l := recipes.Keys[llama.Keys](r); {
	case l.Size != "" || l.Dim > 0:
		r.Model.InitFrom, r.Model.InitPartial = "", false
	case r.Model.InitFrom != "" && FindWeights(r) != nil:
		return nil, []string{"the model's dimensions (llama.size, or the weights of model.init_from)"}
	}
	n, err := Sequence(r)
	if err != nil {
		return nil, []string{"the length of a sample (text.sequence)"}
	}
	if c, err := llamaConfig(r, text.Info{}); err != nil && c.Vocab == 0 {
		lacks = append(lacks, "the size of the vocabulary (llama.vocab)")
	}
	return []string{"sequences of " + amount.Count(n) + " tokens"}, lacks
}
