package graph

import (
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
			b.Failf("batchnorm: the running mean and variance must be made by Builder.State, for training updates them in place")
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

// LossOption changes CrossEntropy and TopK.
type LossOption func(npu.Attrs)

// Smoothing spreads that share of the target evenly over all classes (PyTorch's label_smoothing).
func Smoothing(s float64) LossOption { return func(a npu.Attrs) { a["smoothing"] = s } }

// IgnoreIndex makes rows with that label count for nothing. The default is -100.
func IgnoreIndex(i int) LossOption { return func(a npu.Attrs) { a["ignore_index"] = i } }

// CrossEntropy compares logits [… C] with labels i32[…]. It gives the SUM of the losses of the valid rows, and their number, both f32 scalars.
func (b *Builder) CrossEntropy(logits, labels *Node, opts ...LossOption) (loss, count *Node) {
	a := npu.Attrs{"smoothing": 0.0, "ignore_index": -100}
	for _, o := range opts {
		o(a)
	}
	logits, labels = b.rows(logits, labels)
	out := b.Apply(npu.CrossEntropy, a, logits, labels)
	return out[0], out[1]
}

// TopK counts the rows of logits [… C] whose label is among the k largest: an f32 scalar without gradient.
func (b *Builder) TopK(logits, labels *Node, k int, opts ...LossOption) *Node {
	a := npu.Attrs{"ignore_index": -100, "k": k}
	for _, o := range opts {
		o(a)
	}
	delete(a, "smoothing")
	logits, labels = b.rows(logits, labels)
	return b.apply(npu.TopK, a, []*Node{logits, labels})
}

// rows makes logits [… C] and labels […] two- and one-dimensional.
func (b *Builder) rows(logits, labels *Node) (*Node, *Node) {
	if b.err != nil || logits == nil || labels == nil {
		return logits, labels
	}
	s := b.Desc(logits).Shape
	if len(s) <= 2 {
		return logits, labels
	}
	n := int(s[:len(s)-1].Elems())
	return b.Reshape(logits, n, s[len(s)-1]), b.Reshape(labels, n)
}

// Dropout zeroes elements with probability p and scales the rest by 1/(1-p) (arXiv 1207.0580). In evaluation, or with p = 0, it is the identity. The mask is a function
// of the input SeedInput, of which dropout of the model it is, and of the element.
func (b *Builder) Dropout(x *Node, p float64) *Node {
	if b.err == nil && !(p >= 0 && p < 1) {
		b.Failf("dropout: p is %g, want 0 … 1 (excluded)", p)
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
	return b.apply(npu.Dropout, npu.Attrs{"p": p, "id": b.dropouts - 1}, []*Node{x, seed})
}

// Reshape gives x another shape with as many elements. One extent may be -1: whatever is left.
func (b *Builder) Reshape(x *Node, shape ...int) *Node {
	shape = slices.Clone(shape)
	if b.err == nil && b.owns(x, "reshape: x") {
		free, n := -1, 1
		for i, d := range shape {
			if d == -1 && free < 0 {
				free = i
			} else {
				n *= d
			}
		}
		if all := int(b.Desc(x).Shape.Elems()); free >= 0 {
			if n <= 0 || all%n != 0 {
				b.Failf("reshape: the %d elements of x %v do not make the shape %v", all, b.Desc(x).Shape, shape)
				return b.placeholder
			}
			shape[free] = all / n
		}
	}
	return b.apply(npu.Reshape, npu.Attrs{"shape": shape}, []*Node{x})
}

// Flatten keeps the first axis and makes one of the rest.
func (b *Builder) Flatten(x *Node) *Node { return b.Reshape(x, b.Dim(x, 0), -1) }

// StopGrad is x, but no gradient flows back through it.
func (b *Builder) StopGrad(x *Node) *Node {
	return b.apply(npu.Reshape, npu.Attrs{"shape": []int(b.Desc(x).Shape), "stop": true}, []*Node{x})
}

// Concat joins tensors along an axis.
func (b *Builder) Concat(axis int, x ...*Node) *Node {
	if len(x) > 0 {
		axis = b.axis(x[0], axis)
	}
	return b.apply(npu.Concat, npu.Attrs{"axis": axis}, x)
}

// Transpose reorders the axes; without perm it swaps the last two.
func (b *Builder) Transpose(x *Node, perm ...int) *Node {
	if r := len(b.Desc(x).Shape); len(perm) == 0 && r > 1 {
		for i := range r {
			perm = append(perm, i)
		}
		perm[r-1], perm[r-2] = r-2, r-1
	}
	return b.apply(npu.Transpose, npu.Attrs{"perm": perm}, []*Node{x})
}

// Slice takes begin … end-1 along one axis.
func (b *Builder) Slice(x *Node, axis, begin, end int) *Node {
	s := b.Desc(x).Shape
	lo, hi := make([]int, len(s)), slices.Clone([]int(s))
	if axis = b.axis(x, axis); b.err == nil {
		lo[axis], hi[axis] = begin, end
	}
	return b.apply(npu.Slice, npu.Attrs{"begin": lo, "end": hi}, []*Node{x})
}

// axis turns a negative axis into one from the front and checks it.
func (b *Builder) axis(x *Node, axis int) int {
	r := len(b.Desc(x).Shape)
	if axis < 0 {
		axis += r
	}
	if b.err == nil && x != nil && (axis < 0 || axis >= r) {
		b.Failf("axis %d of a tensor of shape %v", axis, b.Desc(x).Shape)
	}
	return axis
}

// Cast changes the element type.
func (b *Builder) Cast(x *Node, t npu.DType) *Node {
	return b.apply(npu.Convert, npu.Attrs{"dtype": t.String()}, []*Node{x})
}

// BroadcastTo repeats x along axes of extent 1 and new leading axes.
func (b *Builder) BroadcastTo(x *Node, shape ...int) *Node {
	return b.apply(npu.BroadcastTo, npu.Attrs{"shape": shape}, []*Node{x})
}

// Sum, Mean and Max reduce over axes, over all without any. The axes vanish.
func (b *Builder) Sum(x *Node, axes ...int) *Node { return b.Reduce("sum", x, false, axes...) }

// Mean is the mean over axes.
func (b *Builder) Mean(x *Node, axes ...int) *Node { return b.Reduce("mean", x, false, axes...) }

// Max is the maximum over axes; equal maxima share the gradient.
func (b *Builder) Max(x *Node, axes ...int) *Node { return b.Reduce("max", x, false, axes...) }

// Reduce is sum, mean or max over axes; keep leaves them with extent 1.
func (b *Builder) Reduce(fn string, x *Node, keep bool, axes ...int) *Node {
	r := len(b.Desc(x).Shape)
	as := make([]int, 0, r)
	for _, a := range axes {
		as = append(as, b.axis(x, a))
	}
	for i := 0; len(axes) == 0 && i < r; i++ {
		as = append(as, i)
	}
	slices.Sort(as)
	return b.apply(npu.Reduce, npu.Attrs{"fn": fn, "axes": as, "keep": keep}, []*Node{x})
}

func (b *Builder) binary(fn string, x, y *Node) *Node {
	return b.apply(npu.Binary, npu.Attrs{"fn": fn}, []*Node{x, y})
}

func (b *Builder) unary(fn string, x *Node) *Node {
	return b.apply(npu.Unary, npu.Attrs{"fn": fn}, []*Node{x})
}

// Affine is alpha·x + beta.
func (b *Builder) Affine(x *Node, alpha, beta float64) *Node {
	return b.apply(npu.Unary, npu.Attrs{"fn": "affine", "alpha": alpha, "beta": beta}, []*Node{x})
}
