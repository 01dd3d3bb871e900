package llama

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Config is the shape of a Llama: everything that is needed to build it, and nothing about training.
type Config struct {
	Dim     int // width of the residual stream
	Hidden  int // width of the feed-forward layer
	Layers  int
	Heads   int // query heads
	KVHeads int // key and value heads; Heads is a multiple of it
	HeadDim int // width of a head; 0: Dim/Heads
	Vocab   int
	Context int // longest sequence it was made for
	Theta   float64
	NormEps float64
	Tied    bool // the last linear layer is the embedding
	Scaling Scaling
	BOS     int // ids of the begin and the end of a text; -1: none
	EOS     int
}

// Scaling stretches rotary frequencies for longer contexts, as Llama 3.1 does. The zero value does not.
type Scaling struct {
	Factor   float64 // by which low frequencies are divided; 0 or 1: no scaling
	LowFreq  float64 // wavelengths above Original/LowFreq are divided by Factor
	HighFreq float64 // wavelengths below Original/HighFreq stay; between the two it is blended
	Original int     // context before
}

// On says whether the scaling does anything.
func (s Scaling) On() bool { return s.Factor > 1 }

// Head is the width of one head.
func (c Config) Head() int {
	if c.HeadDim > 0 {
		return c.HeadDim
	}
	if c.Heads == 0 {
		return 0
	}
	return c.Dim / c.Heads
}

// sized are the numbers that tell the published models apart; the rest follows.
func sized(dim, hidden, layers, heads, kv, vocab, context int, theta float64) Config {
	return Config{
		Dim: dim, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: kv, Vocab: vocab, Context: context,
		Theta: theta, NormEps: 1e-5, BOS: 1, EOS: 2,
	}
}

// third is a model of the third generation: another vocabulary, and from 3.1 on stretched frequencies.
func third(c Config, factor float64, tied bool) Config {
	c.BOS, c.EOS, c.Tied = 128000, 128001, tied
	if factor > 1 {
		c.Scaling = Scaling{Factor: factor, LowFreq: 1, HighFreq: 4, Original: 8192}
	}
	return c
}

// tied makes the last layer the embedding.
func tied(c Config) Config { c.Tied = true; return c }

// sizes are the models known by name. Source: arXiv 2307.09288 (Llama 2), arXiv 2407.21783 (Llama 3), the model cards of 3.2, and
// karpathy/tinyllamas for the stories.
var sizes = map[string]Config{
	"llama2-7b":     sized(4096, 11008, 32, 32, 32, 32000, 4096, 1e4),
	"llama2-13b":    sized(5120, 13824, 40, 40, 40, 32000, 4096, 1e4),
	"llama2-70b":    sized(8192, 28672, 80, 64, 8, 32000, 4096, 1e4),
	"llama3-8b":     third(sized(4096, 14336, 32, 32, 8, 128256, 8192, 5e5), 0, false),
	"llama3-70b":    third(sized(8192, 28672, 80, 64, 8, 128256, 8192, 5e5), 0, false),
	"llama3.1-8b":   third(sized(4096, 14336, 32, 32, 8, 128256, 131072, 5e5), 8, false),
	"llama3.1-70b":  third(sized(8192, 28672, 80, 64, 8, 128256, 131072, 5e5), 8, false),
	"llama3.1-405b": third(sized(16384, 53248, 126, 128, 8, 128256, 131072, 5e5), 8, false),
	"llama3.2-1b":   third(sized(2048, 8192, 16, 32, 8, 128256, 131072, 5e5), 32, true),
	"llama3.2-3b":   third(sized(3072, 8192, 28, 24, 8, 128256, 131072, 5e5), 32, true),
	"stories260k":   tied(sized(64, 172, 5, 8, 4, 512, 512, 1e4)),
	"stories15m":    tied(sized(288, 768, 6, 6, 6, 32000, 256, 1e4)),
	"stories42m":    tied(sized(512, 1376, 8, 8, 8, 32000, 1024, 1e4)),
	"stories110m":   tied(sized(768, 2048, 12, 12, 12, 32000, 1024, 1e4)),
	"tiny":          tied(sized(128, 344, 4, 4, 2, 512, 256, 1e4)),
}

// Names lists the models known by name.
func Names() []string { return slices.Sorted(maps.Keys(sizes)) }

// Named is the model of a name.
func Named(name string) (Config, error) {
	if c, ok := sizes[strings.ToLower(name)]; ok {
		return c, nil
	}
	return Config{}, fmt.Errorf("llama: no model is called %q\nhint: one of %s, or give the dimensions", name, strings.Join(Names(), ", "))
}

// FeedForward is the hidden width that follows from Meta's rule where none is given: 2/3 of 4·dim, times a factor, rounded up.
func FeedForward(dim int, factor float64, multiple int) int {
	h := 2 * 4 * dim / 3
	if factor > 0 {
		h = int(factor * float64(h))
	}
	multiple = max(multiple, 1)
	return (h + multiple - 1) / multiple * multiple
}

// Params counts the parameters; a tied last layer counts once.
func (c Config) Params() int64 {
	dim, hd := int64(c.Dim), int64(c.Head())
	layer := 2*dim + dim*hd*int64(2*c.Heads+2*c.KVHeads) + 3*dim*int64(c.Hidden)
	n := int64(c.Layers)*layer + dim + dim*int64(c.Vocab)
	if !c.Tied {
		n += dim * int64(c.Vocab)
	}
	return n
}

// Check names every fault of the configuration at once.
func (c Config) Check() error {
	var errs []error
	need := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("llama: "+format, a...))
		}
	}
	for _, d := range []struct {
		name string
		v    int
	}{{"dim", c.Dim}, {"hidden", c.Hidden}, {"layers", c.Layers}, {"heads", c.Heads}, {"kv_heads", c.KVHeads}, {"vocab", c.Vocab}, {"context", c.Context}} {
		need(d.v > 0, "%s is %d, must be at least 1", d.name, d.v)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	need(c.HeadDim > 0 || c.Dim%c.Heads == 0, "%d heads do not divide a width of %d\nhint: give head_dim", c.Heads, c.Dim)
	need(c.Heads%c.KVHeads == 0, "%d heads do not divide among %d key-value heads", c.Heads, c.KVHeads)
	need(c.Head()%2 == 0, "the width of a head is %d, and rotary embedding takes pairs", c.Head())
	need(c.Theta > 0, "theta is %g, must be above 0", c.Theta)
	need(c.NormEps > 0 && c.NormEps < 1, "norm_eps is %g, must be between 0 and 1", c.NormEps)
	s := c.Scaling
	need(
		!s.On() || s.HighFreq > s.LowFreq && s.LowFreq > 0 && s.Original > 0,
		"rope scaling %+v: wants 0 < low frequency factor < high, and the original context",
		s,
	)
	return errors.Join(errs...)
}
