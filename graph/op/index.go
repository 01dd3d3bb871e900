package op

import "github.com/gotrain/gotrain/npu"

// Index says that an input holds indices, and into what: 0 … Below-1. Devices that cannot look at values leave the result of others undefined, so
// whoever fills the inputs of a graph checks them (see graph.Builder.Bounds).
type Index struct {
	Input    int
	Below    int
	Ignores  bool // Ignore is allowed too: the label of a row that does not count
	Ignore   int
	Negative bool // every negative number is allowed too: it indexes nothing
}

// labels is the rule of kinds that compare rows of logits with labels: input 1 is below the columns of input 0.
func labels(a npu.Attrs, in []npu.Desc) []Index {
	s := in[0].Shape
	return []Index{{Input: 1, Below: s[len(s)-1], Ignores: true, Ignore: a.Int("ignore_index", -100)}}
}
