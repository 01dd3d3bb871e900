package graphtest

import (
	"math"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// Model is a small graph for tests: Build gives a tensor, a random weighting of which is summed to the loss.
type Model struct {
	Name   string
	Build  func(b *graph.Builder) *graph.Node
	Values map[string][]float64 // of inputs, parameters and states that must not be random
}

// Graph builds the model with its loss.
func (m Model) Graph() *graph.Builder {
	b := graph.New()
	y := m.Build(b)
	w := b.Input("weights", npu.F32, b.Desc(y).Shape...)
	b.Loss(b.Sum(b.Mul(y, w)))
	return b
}

func param(b *graph.Builder, name string, shape ...int) *graph.Node {
	return b.Param(name, shape, graph.Zeros())
}

// Away is Random with at least 0.1 between values and 0, for functions with a kink or a pole there.
func Away(name string, n int) []float64 {
	v := Random(name, n)
	for i := range v {
		v[i] += math.Copysign(0.1, v[i])
	}
	return v
}

// Positive is the absolute value of Away.
func Positive(name string, n int) []float64 {
	v := Away(name, n)
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	return v
}
