package recipes

import (
	"slices"
	"strings"
)

// family is what a recipe needs to know about one kind of network. Package recipes/assemble builds the network; its table has a row of the same name.
type family struct {
	reads     []string         // supported values of data.kind, besides synthetic
	what      string           // what those data are, for messages
	keys      []string         // keys that have no effect on other families
	layers    bool             // built from layers that can be recomputed (train.recompute)
	batchNorm bool             // normalises over the samples of a batch
	check     func(c *checker) // checks across several keys; nil: none
}

// pictures are the kinds of data with labelled pictures; encoded are those whose pictures are JPEG or PNG files of any size.
var pictures, encoded = []string{"imagefolder", "csv", "webdataset", "idx", "packed"}, []string{"imagefolder", "csv", "webdataset"}

// families is the table of networks, by model.name.
func families() map[string]family {
	return map[string]family{
		"resnet": {
			reads: pictures, what: "images", batchNorm: true, check: (*checker).resnet,
			keys: []string{"model.depth", "model.width", "model.classes", "model.small_stem", "model.version", "model.zero_init_residual",
				"model.norm_eps", "model.norm_momentum", "model.label_smoothing"},
		},
		"llama": {
			reads: []string{"text", "tokens"}, what: "text", layers: true, check: (*checker).llama,
			keys: append(keysOf("llama"), keysOf("text")...),
		},
	}
}

// Families lists the networks that a recipe can use.
func Families() []string { return sortedKeys(families()) }

// family is the row of the recipe's network, empty for an unknown name.
func (r *Recipe) family() family { return families()[r.Model.Name] }

// family checks that the data and the training settings suit the network, then applies the network's own checks.
func (c *checker) family() {
	name, f := c.r.Model.Name, c.r.family()
	if f.what == "" {
		return // the name is already reported
	}
	if k := c.r.Data.Kind; k != "synthetic" && !slices.Contains(f.reads, k) {
		c.bad("data.kind", "use "+choice(f.reads)+": "+name+" reads "+f.what, "model.name = %q cannot read data.kind = %q", name, k)
	}
	if !f.layers && c.r.Train.Recompute != "none" {
		c.bad("train.recompute", "", "%q requires a model built from layers, which model.name = %q is not", c.r.Train.Recompute, name)
	}
	if f.check != nil {
		f.check(c)
	}
}

// familyKeys lists, for each family, the keys that only it uses.
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
