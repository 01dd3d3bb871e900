package nn

import (
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// BatchNorm is batch normalisation (arXiv 1502.03167) over axis 1 of [N C H W] or [N C], with the parameters weight and bias [C] (no weight decay) and
// the states running_mean and running_var.
type BatchNorm struct {
	Eps      float64 // 0 is 1e-5
	Momentum float64 // weight of the new batch in the running statistics; 0 is 0.1
	ZeroInit bool    // weight starts with 0, so that a residual block starts as the identity
	Frozen   bool    // running statistics are used in training too, and nothing is trained: for fine-tuning
}

// Apply implements Layer.
func (n BatchNorm) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	var y *graph.Node
	b.In(name, func() {
		c := npu.Shape{b.Dim(x, 1)}
		start := graph.Ones()
		if n.ZeroInit {
			start = graph.Zeros()
		}
		opts := append(frozen(n.Frozen), graph.NoDecay())
		gamma, beta := b.Param("weight", c, start, opts...), b.Param("bias", c, graph.Zeros(), opts...)
		mean, variance := b.State("running_mean", c, 0), b.State("running_var", c, 1)
		eps, momentum := n.Eps, n.Momentum
		if eps == 0 {
			eps = 1e-5
		}
		if momentum == 0 {
			momentum = 0.1
		}
		if n.Frozen {
			y = b.BatchNormFrozen(x, gamma, beta, mean, variance, eps)
		} else {
			y = b.BatchNorm(x, gamma, beta, mean, variance, eps, momentum)
		}
	})
	return y
}

// RMSNorm divides by the root mean square over the last axis (arXiv 1910.07467) and multiplies by the parameter weight, which starts with ones and has no
// weight decay.
type RMSNorm struct {
	Eps    float64 // added to the mean square; 0 is 1e-5
	Frozen bool
}

// Apply implements Layer.
func (n RMSNorm) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	var y *graph.Node
	b.In(name, func() {
		eps := n.Eps
		if eps == 0 {
			eps = 1e-5
		}
		y = b.RMSNorm(x, b.Param("weight", npu.Shape{b.Dim(x, -1)}, graph.Ones(), append(frozen(n.Frozen), graph.NoDecay())...), eps)
	})
	return y
}

// LayerNorm is layer normalisation over the last axis (arXiv 1607.06450), with the parameters weight, which starts with ones, and bias, with zeros; neither
// has weight decay.
type LayerNorm struct {
	Eps      float64 // added to the variance; 0 is 1e-5, PyTorch's default. Vision transformers have 1e-6
	NoBias   bool    // only weight, PyTorch's bias=False
	NoAffine bool    // no parameters, PyTorch's elementwise_affine=False
	Frozen   bool
}

// Apply implements Layer.
func (n LayerNorm) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	var y *graph.Node
	b.In(name, func() {
		d, eps, opts := npu.Shape{b.Dim(x, -1)}, n.Eps, append(frozen(n.Frozen), graph.NoDecay())
		if eps == 0 {
			eps = 1e-5
		}
		var weight, bias *graph.Node
		if !n.NoAffine {
			weight = b.Param("weight", d, graph.Ones(), opts...)
		}
		if !n.NoAffine && !n.NoBias {
			bias = b.Param("bias", d, graph.Zeros(), opts...)
		}
		y = b.LayerNorm(x, weight, bias, eps)
	})
	return y
}
