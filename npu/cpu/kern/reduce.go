//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

func init() { register(npu.Reduce, prepareReduce) }

var reduceCodes = map[string]int64{"sum": 0, "mean": 1, "max": 2}

func prepareReduce(op npu.Op) *Call {
	x, y := op.In[0], op.Out[0]
	dt, ok := act(x.DType)
	if !ok || x.Layout != npu.Plain || !alike(x, y) || x.Shape.Elems() == 0 {
		return nil
	}
	gone := make([]int64, len(x.Shape)) // 1 where reduced
	for _, a := range op.Attrs.Ints("axes") {
		gone[a] = 1
	}
	var keep, red []int64
	st, sort := strides(x.Shape), int64(-1)
	for i, n := range x.Shape {
		if n == 1 {
			continue
		}
		list := &keep
		if gone[i] == 1 {
			list = &red
		}
		if gone[i] == sort { // merged with its neighbour
			last := len(*list) - 2
			(*list)[last] *= int64(n)
			(*list)[last+1] = st[i]
		} else {
			*list = append(*list, int64(n), st[i])
		}
		sort = gone[i]
	}
	inner := int64(1)
	if sort == 1 {
		inner = 0
	}
	if sort == -1 { // only extents of 1
		keep = []int64{1, 1}
	}
	return &Call{
		kernel: "reduce", dt: dt, v: append(keep, red...),
		n: []int64{reduceCodes[op.Attrs.Str("fn")], x.Shape.Elems() / y.Shape.Elems(), int64(len(keep) / 2), int64(len(red) / 2), inner, x.Shape.Elems()},
	}
}
