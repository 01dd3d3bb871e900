//go:build cgo && linux && (amd64 || arm64)

package kern

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

func init() {
	register(npu.Transpose, prepareTranspose)
	register(npu.Slice, prepareSlice)
	register(npu.Pad, preparePad)
	register(npu.Reshape, prepareReshape)
	register(npu.BroadcastTo, prepareBroadcastTo)
	register(npu.Concat, prepareConcat)
	register(npu.Fill, prepareFill)
}

// copyCall is the Call that moves elements: shape s, read with strides sx from element x0, written with strides sy from y0.
func copyCall(op npu.Op, s npu.Shape, sx []int64, x0 int64, sy []int64, y0 int64, clear bool) *Call {
	for _, d := range args(op) {
		if d.Layout != npu.Plain {
			return nil
		}
	}
	return strided(op.Out[0], s, sx, x0, sy, y0, clear)
}

func strided(y npu.Desc, s npu.Shape, sx []int64, x0 int64, sy []int64, y0 int64, clear bool) *Call {
	if s.Elems() == 0 {
		s, sx, sy = npu.Shape{0}, []int64{1}, []int64{1}
	}
	dims, st := merge(s, sx, sy)
	c := &Call{kernel: "copy", v: append(append(dims, st[0]...), st[1]...), n: []int64{int64(len(dims)), int64(y.DType.Size()), x0, y0, 0}}
	pairForTiles(c.v, len(dims))
	if clear {
		c.n[4] = y.PlainBytes()
	}
	return c
}

// pairForTiles moves the dim with stride 1 in x next to the last dim, if it is not the last itself: the kernel then moves tiles of the two.
func pairForTiles(v []int64, nd int) {
	for d := 0; d < nd-2; d++ {
		if v[nd+d] == 1 {
			for k := 0; k < 3; k++ {
				v[k*nd+d], v[k*nd+nd-2] = v[k*nd+nd-2], v[k*nd+d]
			}
			return
		}
	}
}

func prepareTranspose(op npu.Op) *Call {
	own, sx := strides(op.In[0].Shape), []int64{}
	for _, p := range op.Attrs.Ints("perm") {
		sx = append(sx, own[p])
	}
	y := op.Out[0].Shape
	return copyCall(op, y, sx, 0, strides(y), 0, false)
}

// origin is the index of the element at these coordinates.
func origin(at []int, st []int64) int64 {
	o := int64(0)
	for i, b := range at {
		o += int64(b) * st[i]
	}
	return o
}

func prepareSlice(op npu.Op) *Call {
	sx, y := strides(op.In[0].Shape), op.Out[0].Shape
	return copyCall(op, y, sx, origin(op.Attrs.Ints("begin"), sx), strides(y), 0, false)
}

func preparePad(op npu.Op) *Call {
	x, sy := op.In[0].Shape, strides(op.Out[0].Shape)
	return copyCall(op, x, strides(x), 0, sy, origin(op.Attrs.Ints("before"), sy), true)
}

func prepareReshape(op npu.Op) *Call {
	n := npu.Shape{int(op.In[0].Shape.Elems())}
	return copyCall(op, n, []int64{1}, 0, []int64{1}, 0, false)
}

func prepareBroadcastTo(op npu.Op) *Call {
	y := op.Out[0].Shape
	return copyCall(op, y, broadcastStrides(op.In[0].Shape, y), 0, strides(y), 0, false)
}

// prepareConcat supports any layout that all arguments share: the axis is looked up in memory order.
func prepareConcat(op npu.Op) *Call {
	y := op.Out[0]
	if !alike(args(op)...) || len(op.In) >= maxArgs {
		return nil
	}
	s, ok := physical(y)
	if !ok {
		return nil
	}
	axis := op.Attrs.Int("axis", 0)
	if y.Layout == NHWC {
		axis = []int{0, 3, 1, 2}[axis]
	}
	c := &Call{kernel: "concat", n: []int64{int64(len(op.In)), npu.Shape(s[:axis]).Elems()}}
	for _, x := range op.In {
		xs, ok := physical(x)
		if !ok {
			return nil
		}
		c.v = append(c.v, npu.Shape(xs[axis:]).Elems()*int64(x.DType.Size()))
	}
	return c
}

func prepareFill(op npu.Op) *Call {
	y := op.Out[0]
	if y.Layout != npu.Plain {
		return nil
	}
	one := make([]byte, 8)
	if err := ref.Run(npu.Op{Kind: npu.Fill, Attrs: op.Attrs, Out: []npu.Desc{{DType: y.DType}}}, [][]byte{one}); err != nil {
		return nil
	}
	bits := uint64(0)
	for i := range y.DType.Size() {
		bits |= uint64(one[i]) << (8 * i)
	}
	return &Call{kernel: "fill", n: []int64{y.Shape.Elems(), int64(y.DType.Size()), int64(bits)}}
}

// physical is the extents of x from outermost to innermost in memory.
func physical(x npu.Desc) (s npu.Shape, ok bool) {
	if x.Layout == npu.Plain {
		return x.Shape, true
	}
	if _, _, ok := order(x); !ok {
		return nil, false
	}
	n, c, h, w := x.Shape[0], x.Shape[1], x.Shape[2], x.Shape[3]
	if x.Layout == NHWC {
		return npu.Shape{n, h, w, c}, true
	}
	block := Block(x.Layout)
	return npu.Shape{n, c / block, h, w, block}, true
}
