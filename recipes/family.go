package recipes

import (
	"slices"
	"strings"
)

// family is what a recipe has to know of one kind of network. What it is made of is in package recipes/assemble, which has a row of the same name.
type family struct {
	reads     []string         // values of data.kind, besides synthetic
	what      string           // they are, for a person
	keys      []string         // that have no effect on other families
	layers    bool             // is made of layers that may be computed again (train.recompute)
	batchNorm bool             // normalises over the samples of a batch
	check     func(c *checker) // rules over several keys; nil: none
}

// families is the table of networks, by model.name.
func families() map[string]family {
	return map[string]family{
		"resnet": {
			reads: []string{"imagefolder", "idx", "packed"}, what: "pictures", batchNorm: true,
			keys: []string{"model.depth", "model.width", "model.classes", "model.small_stem", "model.version", "model.zero_init_residual",
				"model.norm_eps", "model.norm_momentum", "model.label_smoothing"},
		},
		"llama": {
			reads: []string{"text", "tokens"}, what: "text", layers: true, check: (*checker).llama,
			keys: append(keysOf("llama"), keysOf("text")...),
		},
	}
}

// Families names the networks that a recipe can have.
func Families() []string { return sortedKeys(families()) }

// family is the row of the recipe's network, empty for a name that is not known.
func (r *Recipe) family() family { return families()[r.Model.Name] }

// family checks that data and engine suit the network, then the network's own rules.
func (c *checker) family() {
	name, f := c.r.Model.Name, c.r.family()
	if f.what == "" {
		return // the name is a problem already
	}
	if k := c.r.Data.Kind; k != "synthetic" && !slices.Contains(f.reads, k) {
		c.bad("data.kind", choice(f.reads)+": a "+name+" reads "+f.what, "%q is nothing that model.name = %q can read", k, name)
	}
	if !f.layers && c.r.Train.Recompute != "none" {
		c.bad("train.recompute", "", "%q is for models of layers, which model.name = %q is not", c.r.Train.Recompute, name)
	}
	if f.check != nil {
		f.check(c)
	}
}

// familyKeys are the keys by the only family that they have an effect on.
func familyKeys() map[string][]string {
	out := map[string][]string{}
	for name, f := range families() {
		out[name] = f.keys
	}
	return out
}

// choice writes a list as "a, b or c".
func choice(words []string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " or " + words[n]
}
