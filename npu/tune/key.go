package tune

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Key names an op by what decides which algorithm is fastest: kind, attributes, types and shapes, without the number of pictures, layouts and algorithm.
// So an evaluation with another batch uses the same algorithms.
func Key(op npu.Op) string {
	attrs := op.WithAlgorithm(npu.Direct).Attrs
	weights := -1 // index of the argument that is no batch of pictures
	switch op.Kind {
	case npu.Conv2D, npu.Conv2DBwdData:
		weights = 1
	case npu.Conv2DBwdWeights:
		weights = len(op.In)
	}
	if weights >= 0 { // they repeat a shape
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
			if j == 0 && weights >= 0 && i != weights && len(d.Shape) == 4 {
				b.WriteByte('n')
				continue
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

// convolution reports whether the op is one of the three kinds.
func convolution(op npu.Op) bool {
	return op.Kind == npu.Conv2D || op.Kind == npu.Conv2DBwdData || op.Kind == npu.Conv2DBwdWeights
}

// flops is the arithmetic of a convolution.
func flops(op npu.Op) int64 {
	y, w := op.Out[0].Shape, op.In[1].Shape
	switch op.Kind {
	case npu.Conv2DBwdData:
		y = op.In[0].Shape
	case npu.Conv2DBwdWeights:
		y, w = op.In[1].Shape, op.Out[0].Shape
	}
	return 2 * y.Elems() * w[1:].Elems()
}
