package graph

import (
	"maps"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Conv is the geometry of a convolution. The zero value is stride 1, no padding, no dilation, one group.
type Conv struct {
	Stride   [2]int
	Pad      [4]int // top, left, bottom, right
	Dilation [2]int
	Groups   int
}

// Pool is the geometry of a pooling window. A zero stride is the kernel.
type Pool struct {
	Kernel, Stride [2]int
	Pad            [4]int // top, left, bottom, right
	Dilation       [2]int // maxpool only
	IncludePad     bool   // avgpool only: the padding counts in the mean
}

// Square is the same extent in both directions.
func Square(n int) [2]int { return [2]int{n, n} }

// Pad is the same padding on all sides.
func Pad(n int) [4]int { return [4]int{n, n, n, n} }

func orOne(a [2]int, def [2]int) []int {
	if a == [2]int{} {
		a = def
	}
	return []int{a[0], a[1]}
}

// Conv2D convolves x [N C H W] with w [O C/groups KH KW]; bias [O] may be nil. Result [N O OH OW].
func (b *Builder) Conv2D(x, w, bias *Node, g Conv) *Node {
	if g.Groups == 0 {
		g.Groups = 1
	}
	one := Square(1)
	a := npu.Attrs{"stride": orOne(g.Stride, one), "pad": g.Pad[:], "dilation": orOne(g.Dilation, one), "groups": g.Groups, "bias": bias != nil}
	in := []*Node{x, w}
	if bias != nil {
		in = append(in, bias)
	}
	return b.apply(npu.Conv2D, a, in)
}

// MatMul is a·b over the last two axes, each transposed first where ta or tb says so. Leading axes must be equal; b of rank two serves all of a's.
func (b *Builder) MatMul(x, y *Node, ta, tb bool) *Node { return b.matmul(x, y, nil, ta, tb) }

// Linear is x·wᵀ + bias for x [… I], w [O I], bias [O] or nil. Result [… O].
func (b *Builder) Linear(x, w, bias *Node) *Node { return b.matmul(x, w, bias, false, true) }

func (b *Builder) matmul(x, y, bias *Node, ta, tb bool) *Node {
	in := []*Node{x, y}
	if bias != nil {
		in = append(in, bias)
	}
	if b.err != nil || x == nil || y == nil {
		return b.apply(npu.MatMul, nil, in)
	}
	xs, ys := b.Desc(x).Shape, b.Desc(y).Shape
	flat := len(xs) > 2 && len(ys) == 2 && !ta
	if flat { // one large product instead of many small ones
		in[0] = b.Reshape(x, int(xs[:len(xs)-1].Elems()), xs[len(xs)-1])
	}
	z := b.apply(npu.MatMul, npu.Attrs{"ta": ta, "tb": tb, "bias": bias != nil}, in)
	if flat && b.err == nil {
		z = b.Reshape(z, append(slices.Clone([]int(xs[:len(xs)-1])), b.Dim(z, 1))...)
	}
	return z
}

// BatchNorm normalises x [N C H W] or [N C] per channel (arXiv 1502.03167). gamma, beta and the running statistics are [C]; mean and variance must be
// States. In training batch statistics normalise and the running ones are updated: running = (1-momentum)·running + momentum·batch, the
// variance unbiased. In evaluation the running ones normalise.
func (b *Builder) BatchNorm(x, gamma, beta, mean, variance *Node, eps, momentum float64) *Node {
	in := []*Node{x, gamma, beta, mean, variance}
	if !b.training {
		return b.apply(npu.BatchNormInfer, npu.Attrs{"eps": eps}, in)
	}
	for _, n := range in[3:] {
		if l := b.leaves[n]; b.err == nil && (l == nil || l.kind != leafState) {
			b.Failf("batchnorm: the running mean and variance must be made by Builder.State, because training updates them in place")
		}
	}
	return b.apply(npu.BatchNorm, npu.Attrs{"eps": eps, "momentum": momentum}, in)
}

// BatchNormFrozen normalises with given statistics, in training too: for fine-tuning.
func (b *Builder) BatchNormFrozen(x, gamma, beta, mean, variance *Node, eps float64) *Node {
	return b.apply(npu.BatchNormInfer, npu.Attrs{"eps": eps}, []*Node{x, gamma, beta, mean, variance})
}

// MaxPool takes the maximum of each window of x [N C H W]. Padding never wins.
func (b *Builder) MaxPool(x *Node, p Pool) *Node {
	a := p.attrs()
	a["dilation"] = orOne(p.Dilation, Square(1))
	return b.apply(npu.MaxPool, a, []*Node{x})
}

// AvgPool takes the mean of each window of x [N C H W].
func (b *Builder) AvgPool(x *Node, p Pool) *Node {
	a := p.attrs()
	a["include_pad"] = p.IncludePad
	return b.apply(npu.AvgPool, a, []*Node{x})
}

func (p Pool) attrs() npu.Attrs {
	return npu.Attrs{"kernel": p.Kernel[:], "stride": orOne(p.Stride, p.Kernel), "pad": p.Pad[:]}
}

// GlobalAvgPool is the mean over H and W: [N C H W] → [N C].
func (b *Builder) GlobalAvgPool(x *Node) *Node { return b.apply(npu.GlobalAvgPool, nil, []*Node{x}) }

// Softmax and LogSoftmax work over the last axis.
func (b *Builder) Softmax(x *Node) *Node { return b.apply(npu.Softmax, nil, []*Node{x}) }

// LogSoftmax is the logarithm of Softmax, computed in one go.
func (b *Builder) LogSoftmax(x *Node) *Node { return b.apply(npu.LogSoftmax, nil, []*Node{x}) }

// Dropout zeroes elements with probability p and scales the rest by 1/(1-p) (arXiv 1207.0580). In evaluation, or with p = 0, it is the
// identity. The mask is a function of the input SeedInput, of which dropout of the model it is, and of the element.
func (b *Builder) Dropout(x *Node, p float64) *Node {
	return b.drop("dropout", x, p, nil)
}

// DropPath zeroes whole samples of x [N …] with probability p and scales the others by 1/(1-p): stochastic depth (arXiv 1603.09382), for the branch of a
// residual block, before the sum. The numbers are timm's drop_path. In evaluation, or with p = 0, it is the identity. Which samples are dropped is a function
// of the input SeedInput, of which dropout of the model it is, and of the sample's place in the batch.
func (b *Builder) DropPath(x *Node, p float64) *Node {
	return b.drop("drop path", x, p, npu.Attrs{"rows": true})
}

// drop is Dropout or DropPath, by more attributes.
func (b *Builder) drop(what string, x *Node, p float64, a npu.Attrs) *Node {
	if b.err == nil && !(p >= 0 && p < 1) {
		b.Failf("%s: p is %g, want 0 … 1 (excluded)", what, p)
	}
	if b.err != nil || !b.training || p == 0 {
		return x
	}
	var seed *Node
	for n, l := range b.leaves {
		if l.kind == leafInput && l.name == SeedInput {
			seed = n
		}
	}
	if seed == nil {
		seed = b.Input(SeedInput, npu.I64)
	}
	b.dropouts++
	attrs := npu.Attrs{"p": p, "id": b.dropouts - 1}
	maps.Copy(attrs, a)
	return b.apply(npu.Dropout, attrs, []*Node{x, seed})
}
