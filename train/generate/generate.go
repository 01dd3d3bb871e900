package generate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/npu"
)

// Stats reports how long a run took.
type Stats struct {
	Prompt, Written int           // tokens of all texts
	Reading         time.Duration // time to read the prompts
	Writing         time.Duration // time for all tokens except each text's first, which comes with its prompt
	Steps           int           // tokens of the longest text
	// Kernels are the kernels that ran in the time of Writing, in order, with Options.Profile. Their launches are valid until the Generator is closed.
	Kernels []npu.Sample
}

// PerSecond is the number of tokens generated per second over all texts; 0 if there were none.
func (s Stats) PerSecond() float64 {
	if s.Writing <= 0 || s.Written <= 0 {
		return 0
	}
	return float64(s.Written) / s.Writing.Seconds()
}

// ByStep cuts Kernels into those of each step. The last step is left out where it was cut off.
func (s Stats) ByStep() (steps [][]npu.Sample) {
	if len(s.Kernels) == 0 {
		return nil
	}
	n := 1
	for n < len(s.Kernels) && s.Kernels[n].Launch != s.Kernels[0].Launch {
		n++
	}
	for all := s.Kernels; len(all) >= n; all = all[n:] {
		steps = append(steps, all[:n])
	}
	return steps
}

// text is one text being generated.
type text struct {
	*sampler
	length int   // tokens read so far
	next   int32 // the newest token, not yet read
	left   int   // tokens still to generate
	done   bool
}

// Run continues prompts, at most Options.Texts of them, by up to limit tokens each. emit is called for each new token as it is chosen, texts in
// order. A text ends before an end token (Config.EOS, or Config.BOS, which would begin another text), or when its room is used up. Run may be called
// again; each call starts from empty texts.
func (g *Generator) Run(ctx context.Context, prompts [][]int32, s Sampling, limit int, emit func(text int, id int32)) (st Stats, err error) {
	texts, err := g.start(prompts, s, limit)
	if err != nil {
		return st, err
	}
	begin := time.Now()
	if err := g.read(ctx, prompts, texts); err != nil {
		return st, err
	}
	for _, p := range prompts {
		st.Prompt += len(p)
	}
	st.Reading = time.Since(begin)
	if g.opt.Profile {
		g.stream.Profile(true)
	}
	begin = time.Now()
	err = g.write(ctx, texts, emit, &st)
	st.Writing = time.Since(begin)
	if g.opt.Profile {
		st.Kernels = g.stream.Profile(false)
	}
	return st, err
}

func over(texts []*text) bool {
	for _, t := range texts {
		if !t.done {
			return false
		}
	}
	return true
}

func (g *Generator) start(prompts [][]int32, s Sampling, limit int) ([]*text, error) {
	if g.stream == nil {
		return nil, errClosed
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	if len(prompts) == 0 || len(prompts) > g.opt.Texts {
		return nil, fmt.Errorf("generate: %d prompts, but room for only %d", len(prompts), g.opt.Texts)
	}
	var texts []*text
	for i, p := range prompts {
		if len(p) == 0 {
			return nil, fmt.Errorf("generate: prompt %d is empty\nhint: begin it with the token that begins a text (BOS)", i)
		}
		if len(p) > g.opt.Room {
			return nil, fmt.Errorf("generate: prompt %d has %d tokens, but there is room for only %d", i, len(p), g.opt.Room)
		}
		for j, id := range p {
			if id < 0 || int(id) >= g.config.Vocab {
				return nil, fmt.Errorf("generate: prompt %d: token %d is %d, outside the vocabulary of %d\nhint: use the tokenizer of this model", i, j, id, g.config.Vocab)
			}
		}
		texts = append(texts, &text{sampler: newSampler(s, i), left: limit, done: limit <= 0})
	}
	return texts, nil
}

// read runs the prompts through the model, a chunk of each text at a time. The logits that count are those after each text's last token.
func (g *Generator) read(ctx context.Context, prompts [][]int32, texts []*text) error {
	longest := 0
	for _, p := range prompts {
		longest = max(longest, len(p))
	}
	for at := 0; at < longest; {
		p := g.prompt
		if longest-at == 1 {
			p = g.step
		}
		p.clear()
		ends := make([]bool, len(prompts))
		for i, ids := range prompts {
			for j := range min(p.width, len(ids)-at) {
				p.put(i, j, ids[at+j], at+j)
				texts[i].length++
				ends[i] = at+j == len(ids)-1
			}
		}
		if err := g.forward(p); err != nil {
			return err
		}
		if err := g.stream.Sync(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		for i, end := range ends {
			if end {
				g.newest[i] = slices.Clone(p.logits(i, g.config.Vocab)) // longer prompts overwrite them
			}
		}
		at += p.width
	}
	return nil
}

// choose samples the next token of each text, and appends them to chosen.
func (g *Generator) choose(texts []*text, chosen []token) ([]token, error) {
	for i, t := range texts {
		if t.done {
			continue
		}
		id, err := t.pick(g.newest[i])
		if err != nil {
			return chosen, fmt.Errorf("%w (text %d, after %d tokens)", err, i, t.length)
		}
		if ends(g.config, id) {
			t.done = true
			continue
		}
		t.next = id
		chosen = append(chosen, token{i, id})
		if t.left--; t.left == 0 || t.length == g.opt.Room {
			t.done = true
		}
	}
	return chosen, nil
}

func ends(c llama.Config, id int32) bool {
	return int(id) == c.EOS && c.EOS >= 0 || int(id) == c.BOS && c.BOS >= 0
}

var errClosed = errors.New("generate: the generator is closed")
