package tune

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Key names an op in [Choices]: kind, attributes, types and shapes, without layouts and algorithm. Convolutions of more pictures than make 2 GFLOP have one
// key, and it is the same on all machines, so that a checkpoint can be resumed elsewhere.
func Key(op npu.Op) string { return name(small(op)) }

// name is the key of exactly this op.
func name(op npu.Op) string {
	attrs := op.WithAlgorithm(npu.Direct).Attrs
	if convolution(op) { // they repeat a shape
		delete(attrs, "x_shape")
		delete(attrs, "w_shape")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s{%s}", op.Kind, attrs)
	for i := range len(op.In) + len(op.Out) {
		d := arg(op, i)
		fmt.Fprintf(&b, " %s[", d.DType)
		for j, n := range d.Shape {
			if j > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(strconv.Itoa(n))
		}
		b.WriteByte(']')
	}
	return b.String()
}

// arg is argument i of an op: its inputs, then its outputs.
func arg(op npu.Op, i int) npu.Desc {
	if i < len(op.In) {
		return op.In[i]
	}
	return op.Out[i-len(op.In)]
}

// work is the number of floating-point operations of one measured launch, at most (or one picture): enough that what is done once a launch, such as
// transforming weights, has about the share that it has in a network.
const work = 2 << 30

// small is a convolution of at most as many pictures as are enough work.
func small(op npu.Op) npu.Op {
	if !convolution(op) || op.In[0].Shape[0] == 0 {
		return op
	}
	n := int64(op.In[0].Shape[0])
	return withBatch(op, int(max(1, min(n, work/max(1, flops(op)/n)))))
}

// Formed is a device of which some kernels divide their work in another way when there is more of it. Kernels of one form take the same time a picture.
type Formed interface {
	// Form names the way of an op with its algorithm; "" if there is only one.
	Form(op npu.Op) string
}

// forms tells how the device executes an op by each of the algorithms; "" if none of them has several ways.
func forms(dev npu.Device, op npu.Op, names []string) string {
	f, ok := dev.(Formed)
	if !ok {
		return ""
	}
	var list []string
	for _, name := range names {
		if form := f.Form(op.WithAlgorithm(name)); form != "" {
			list = append(list, Name(name)+" in "+form)
		}
	}
	return strings.Join(list, ", ")
}

// pixels is the number of pixels of results, in all pictures, from which on what is done once a launch no longer decides: each transformed weight takes part
// in so many products, or a sixteenth of that.
const pixels = 4096

// enough is a convolution of as few pictures as make enough work and enough use of the weights, if the op has so many.
func enough(op npu.Op) npu.Op {
	measured := small(op)
	if !convolution(op) || op.In[0].Shape[0] == 0 {
		return measured
	}
	n, y := op.In[0].Shape[0], result(op)
	use := (pixels + y[2]*y[3] - 1) / max(1, y[2]*y[3])
	return withBatch(op, max(measured.In[0].Shape[0], min(n, use)))
}

// question is the contest of an op: with as few pictures as are enough and take the same form as the op itself. Its key has that number.
func question(dev npu.Device, op npu.Op, names []string) Contest {
	form, measured := forms(dev, op, names), enough(op)
	for convolution(op) && forms(dev, measured, names) != form {
		n := measured.In[0].Shape[0]
		measured = withBatch(op, min(n+1+n/8, op.In[0].Shape[0]))
	}
	c := Contest{Key: name(measured), op: Key(op)}
	if form != "" {
		c.Key += " " + form
	}
	for _, n := range names {
		c.Entrants = append(c.Entrants, Entrant{Name: n, Op: measured.WithAlgorithm(n)})
	}
	return c
}

// withBatch is a convolution of n pictures.
func withBatch(op npu.Op, n int) npu.Op {
	op = op.Clone()
	op.Attrs = op.Attrs.Clone()
	set := func(d *npu.Desc) {
		d.Shape = d.Shape.Clone()
		d.Shape[0] = n
	}
	set(&op.In[0])
	switch op.Kind {
	case npu.Conv2D:
		set(&op.Out[0])
	case npu.Conv2DBwdData:
		set(&op.Out[0])
		if x := op.Attrs.Ints("x_shape"); len(x) == 4 {
			op.Attrs["x_shape"] = []int{n, x[1], x[2], x[3]}
		}
	case npu.Conv2DBwdWeights:
		set(&op.In[1])
	}
	return op
}

// weights is the index of a convolution's weights among its arguments; -1 for other ops.
func weights(op npu.Op) int {
	switch op.Kind {
	case npu.Conv2D, npu.Conv2DBwdData:
		return 1
	case npu.Conv2DBwdWeights:
		return len(op.In)
	}
	return -1
}

// convolution reports whether the op is one of the three kinds.
func convolution(op npu.Op) bool { return weights(op) >= 0 }

// flops is the arithmetic of a convolution.
func flops(op npu.Op) int64 {
	w := op.In[1].Shape
	if op.Kind == npu.Conv2DBwdWeights {
		w = op.Out[0].Shape
	}
	return 2 * result(op).Elems() * w[1:].Elems()
}

// result is the shape of the forward pass's result, or of its gradient.
func result(op npu.Op) npu.Shape {
	switch op.Kind {
	case npu.Conv2DBwdData:
		return op.In[0].Shape
	case npu.Conv2DBwdWeights:
		return op.In[1].Shape
	}
	return op.Out[0].Shape
}
