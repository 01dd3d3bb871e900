package lower

import "github.com/gotrain/gotrain/npu"

var moveRules = map[string]rule{
	npu.Transpose: {lower: func(b *builder) { b.call("InplaceCopy", b.out(0), b.in(0).permute(b.op.Attrs.Ints("perm")...)) }},
	npu.Concat:    {lower: lowerConcat},
	npu.Slice:     {lower: lowerSlice},
	npu.Pad:       {lower: lowerPad},
	npu.Reshape:   {lower: func(b *builder) { b.inherit(b.out(0).flat(), b.in(0).flat()) }},
	npu.Convert:   {lower: lowerConvert, any: true},
	npu.Fill:      {lower: lowerFill},
}

// lowerConcat leaves out empty tensors, which Cat may refuse.
func lowerConcat(b *builder) {
	var list []Tensor
	for i := range b.op.In {
		if t := b.in(i); t.Elems() > 0 {
			list = append(list, t)
		}
	}
	b.call("Cat", list, b.op.Attrs.Int("axis", 0), b.out(0))
}

func lowerSlice(b *builder) {
	x, end := b.in(0), b.op.Attrs.Ints("end")
	for i, lo := range b.op.Attrs.Ints("begin") {
		x = x.slice(i, int64(lo), int64(end[i]))
	}
	b.call("InplaceCopy", b.out(0), x)
}

func lowerPad(b *builder) {
	x, y := b.in(0), b.out(0)
	b.call("InplaceZero", y)
	to := y
	for i, lo := range b.op.Attrs.Ints("before") {
		to = to.slice(i, int64(lo), int64(lo)+x.Dims[i])
	}
	if x.Elems() > 0 {
		b.call("InplaceCopy", to, x)
	}
}

func lowerFill(b *builder) {
	y, v := b.out(0), b.op.Attrs.Float("value", 0)
	switch {
	case v == 0:
		b.call("InplaceZero", y)
	case y.DType.IsFloat():
		b.call("InplaceFillScalar", y, number(v))
	default:
		b.call("InplaceFillScalar", y, Scalar{y.DType, v})
	}
}

func lowerConvert(b *builder) {
	x, y := b.op.In[0], b.op.Out[0]
	switch {
	case x.Layout == y.Layout && x.Layout == npu.Plain:
		b.cast(b.in(0), b.out(0))
	case x.Layout == y.Layout && x.DType == y.DType:
		b.call("InplaceCopy", described(Ref{Out, 0}, y), described(Ref{In, 0}, x))
	case x.Layout == Lanes && y.Layout == npu.Plain && x.DType == npu.F32 && y.DType == npu.F32:
		b.fromLanes()
	case x.Layout == npu.Plain && y.Layout == Lanes && x.DType == npu.F32 && y.DType == npu.F32:
		b.toLanes()
	default:
		b.fail("no conversion\nhint: only the device that made %s reads it; keep it between batchnorm and its gradient", x)
	}
}
