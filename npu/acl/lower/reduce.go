package lower

import "github.com/gotrain/gotrain/npu"

var reduceRules = map[string]rule{
	npu.Reduce: {lower: lowerReduce, has: func(a npu.Attrs, _ Caps) bool {
		fn := a.Str("fn")
		return fn == "sum" || fn == "mean" || fn == "max"
	}},
	npu.BroadcastTo: {lower: func(b *builder) { b.call("InplaceCopy", b.out(0), b.in(0).broadcast(b.out(0).Dims...)) }},
}

func lowerReduce(b *builder) {
	x, y, keep := b.in(0), b.out(0), b.op.Attrs.Bool("keep")
	axes := make([]int64, 0, len(x.Dims))
	for _, a := range b.op.Attrs.Ints("axes") {
		axes = append(axes, int64(a))
	}
	switch fn := b.op.Attrs.Str("fn"); {
	case len(axes) == 0:
		b.cast(x, y)
	case fn == "sum":
		b.call("ReduceSum", x, axes, keep, y.DType, y)
	case fn == "mean":
		b.call("Mean", x, axes, keep, y.DType, y)
	case x.DType == y.DType:
		b.call("Amax", x, axes, keep, y)
	default:
		t := b.temp(x.DType, y.Dims...)
		b.call("Amax", x, axes, keep, t)
		b.cast(t, y)
	}
}
