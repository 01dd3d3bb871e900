package predict

import (
	"math"
	"slices"
	"strconv"

	"github.com/gotrain/gotrain/train"
)

// Result is what the network says of one input.
type Result struct {
	Logits []float32 // the outputs, of a classifier before the softmax; nil after an error
	Err    error     // why there are none: the picture is broken, for example
	names  []string
}

// Class is one class with its probability.
type Class struct {
	Label       int     `json:"label"`
	Name        string  `json:"class"`
	Probability float64 `json:"probability"`
}

// Probabilities is the softmax of the logits, computed in float64.
func (r Result) Probabilities() []float64 {
	if len(r.Logits) == 0 {
		return nil
	}
	p, most, sum := make([]float64, len(r.Logits)), float64(slices.Max(r.Logits)), 0.0
	for i, v := range r.Logits {
		p[i] = math.Exp(float64(v) - most)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Top returns the k likeliest classes, the likeliest first; fewer if there are fewer. Of equal ones the smaller label comes first.
func (r Result) Top(k int) []Class {
	var out []Class
	for _, g := range train.Likeliest(r.Logits, k) {
		out = append(out, Class{Label: g.Label, Name: nameOf(r.names, g.Label), Probability: g.Probability})
	}
	return out
}

// nameOf is the name of a class, its label if it has none.
func nameOf(names []string, label int) string {
	if label < len(names) {
		return names[label]
	}
	return strconv.Itoa(label)
}
