//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "elementwise.h"
import "C"

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.Relu, func(op npu.Op) *Call { return flatAct("relu", op) })
	register(npu.ReluBwd, func(op npu.Op) *Call { return flatAct("relu_bwd", op) })
	register(npu.Unary, prepareUnary)
	register(npu.Binary, prepareBinary)
	register(npu.Convert, prepareConvert)
}

// flat reports whether the elements of these tensors correspond in memory: the same shape, and the same layout without padding.
func flat(ds ...npu.Desc) bool {
	for _, d := range ds {
		if !d.Shape.Equal(ds[0].Shape) || d.Layout != ds[0].Layout {
			return false
		}
	}
	if ds[0].Layout == npu.Plain {
		return true
	}
	_, _, ok := order(ds[0])
	return ok
}

func args(op npu.Op) []npu.Desc { return append(append([]npu.Desc{}, op.In...), op.Out...) }

// flatAct is the Call of an elementwise kernel whose arguments are activations of the same type.
func flatAct(kernel string, op npu.Op) *Call {
	dt, ok := act(op.In[0].DType)
	if !ok || !alike(args(op)...) || !flat(args(op)...) {
		return nil
	}
	return &Call{kernel: kernel, dt: dt, n: []int64{op.In[0].Shape.Elems()}}
}

var unaryCodes = map[string]int{
	"neg": C.FN_NEG, "exp": C.FN_EXP, "log": C.FN_LOG, "sqrt": C.FN_SQRT, "rsqrt": C.FN_RSQRT, "square": C.FN_SQUARE, "abs": C.FN_ABS, "recip": C.FN_RECIP,
	"tanh": C.FN_TANH, "sigmoid": C.FN_SIGMOID, "silu": C.FN_SILU, "sign": C.FN_SIGN, "affine": C.FN_AFFINE,
}

var binaryCodes = map[string]int{
	"add": C.FN_ADD, "sub": C.FN_SUB, "mul": C.FN_MUL, "div": C.FN_DIV, "max": C.FN_MAX, "min": C.FN_MIN, "gt": C.FN_GT, "ge": C.FN_GE, "eq": C.FN_EQ,
}

// mapCall is the Call of the general map.
func mapCall(op npu.Op, fn int, relu bool, dims, sa, sb []int64) *Call {
	var types [3]int64
	for i, d := range args(op) {
		t, ok := act(d.DType)
		if !ok {
			return nil
		}
		types[i] = int64(t)
	}
	c := &Call{kernel: "map", v: append(append(append([]int64{}, dims...), sa...), sb...), slots: []int{0, 1, 2}}
	if len(op.In) == 1 {
		types[2], c.slots = types[1], []int{0, 2}
	}
	c.n = []int64{int64(fn), int64(bit(relu, 1)), int64(len(dims)), types[0], types[1], types[2]}
	return c
}

func prepareUnary(op npu.Op) *Call {
	if !flat(args(op)...) {
		return nil
	}
	n := []int64{op.In[0].Shape.Elems()}
	c := mapCall(op, unaryCodes[op.Attrs.Str("fn")], false, n, []int64{1}, []int64{0})
	if c != nil {
		c.f = []float64{op.Attrs.Float("alpha", 1), op.Attrs.Float("beta", 0)}
	}
	return c
}

func prepareBinary(op npu.Op) *Call {
	relu, fn := op.Attrs.Bool("relu"), op.Attrs.Str("fn")
	if flat(args(op)...) {
		if fn == "add" && alike(args(op)...) {
			if c := flatAct("add", op); c != nil {
				c.flags = bit(relu, C.ADD_RELU)
				return c
			}
		}
		return mapCall(op, binaryCodes[fn], relu, []int64{op.In[0].Shape.Elems()}, []int64{1}, []int64{1})
	}
	for _, d := range args(op) {
		if d.Layout != npu.Plain {
			return nil
		}
	}
	dims, st := merge(op.Out[0].Shape, broadcastStrides(op.In[0].Shape, op.Out[0].Shape), broadcastStrides(op.In[1].Shape, op.Out[0].Shape))
	return mapCall(op, binaryCodes[fn], relu, dims, st[0], st[1])
}

func prepareConvert(op npu.Op) *Call {
	x, y := op.In[0], op.Out[0]
	if x.DType == y.DType {
		if !flat(x, y) {
			return nil // oneDNN converts layouts faster
		}
		return strided(y, npu.Shape{int(x.Shape.Elems())}, []int64{1}, 0, []int64{1}, 0, false)
	}
	from, ok1 := act(x.DType)
	to, ok2 := act(y.DType)
	if !ok1 || !ok2 || !flat(x, y) {
		return nil
	}
	return &Call{kernel: "convert", n: []int64{x.Shape.Elems(), int64(from), int64(to)}}
}
