package nn

import (
	"strconv"

	"github.com/gotrain/gotrain/graph"
)

// Layer is something with parameters under one name: it takes a tensor and gives one.
type Layer interface {
	// Apply builds the layer into b, with its parameters in the scope name.
	Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node
}

// Func is a layer without parameters.
type Func func(b *graph.Builder, x *graph.Node) *graph.Node

// Apply implements Layer.
func (f Func) Apply(b *graph.Builder, _ string, x *graph.Node) *graph.Node { return f(b, x) }

// Layers without parameters.
var (
	Relu          = Func((*graph.Builder).Relu)
	Gelu          = Func((*graph.Builder).Gelu)     // exact, PyTorch's default
	GeluTanh      = Func((*graph.Builder).GeluTanh) // PyTorch's approximate="tanh"
	Silu          = Func((*graph.Builder).Silu)
	Tanh          = Func((*graph.Builder).Tanh)
	Sigmoid       = Func((*graph.Builder).Sigmoid)
	Flatten       = Func((*graph.Builder).Flatten)
	GlobalAvgPool = Func((*graph.Builder).GlobalAvgPool)
)

// Dropout zeroes elements with probability p in training.
func Dropout(p float64) Layer {
	return Func(func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Dropout(x, p) })
}

// DropPath drops whole samples of a residual branch with probability p in training (stochastic depth, arXiv 1603.09382); see graph.Builder.DropPath.
func DropPath(p float64) Layer {
	return Func(func(b *graph.Builder, x *graph.Node) *graph.Node { return b.DropPath(x, p) })
}

// DropPathRates are the probabilities of the blocks of a network, one for each block from the input on: the linear decay rule of arXiv 1603.09382 as timm has
// it, from 0 in the first block to last in the last one.
func DropPathRates(last float64, blocks int) []float64 {
	p := make([]float64, blocks)
	for i := 1; i < blocks; i++ {
		p[i] = last * float64(i) / float64(blocks-1)
	}
	return p
}

// MaxPool is a square maximum pooling.
func MaxPool(kernel, stride, pad int) Layer {
	return Func(func(b *graph.Builder, x *graph.Node) *graph.Node {
		return b.MaxPool(x, graph.Pool{Kernel: graph.Square(kernel), Stride: graph.Square(stride), Pad: graph.Pad(pad)})
	})
}

// AvgPool is a square average pooling; the padding does not count.
func AvgPool(kernel, stride, pad int) Layer {
	return Func(func(b *graph.Builder, x *graph.Node) *graph.Node {
		return b.AvgPool(x, graph.Pool{Kernel: graph.Square(kernel), Stride: graph.Square(stride), Pad: graph.Pad(pad)})
	})
}

// Sequential applies layers one after the other; layer i is called i, as in PyTorch.
type Sequential []Layer

// Apply implements Layer.
func (s Sequential) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	b.In(name, func() {
		for i, l := range s {
			x = l.Apply(b, strconv.Itoa(i), x)
		}
	})
	return x
}

// Residual is x + body(x), with the body's parameters under its own name.
type Residual struct{ Body Layer }

// Apply implements Layer.
func (r Residual) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	return b.Add(r.Body.Apply(b, name, x), x)
}
