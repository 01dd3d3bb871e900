package lower

import "github.com/gotrain/gotrain/npu"

// Var is the layout of batchnorm's result rstd where the operator keeps the biased variance instead: on A2 and A3.
const Var npu.Layout = "acl:var"

var normRules = map[string]rule{
	npu.BatchNorm: {
		lower: lowerBatchNorm, needs: []string{"BatchNorm"},
		choose: func(op *npu.Op, c Caps) { variance(op.Out, 2, c) },
	},
	npu.BatchNormInfer: {lower: lowerBatchNormInfer, needs: []string{"BatchNorm"}},
	npu.BatchNormBwd: {
		lower: lowerBatchNormBwd, needs: []string{"BatchNormBackward"},
		choose: func(op *npu.Op, c Caps) { variance(op.In, 5, c) },
	},
}

// variance sets the layout of the saved statistic. 950 saves 1/√(v+eps), as the contract has it.
func variance(list []npu.Desc, i int, c Caps) {
	if i < len(list) && c.Family != A950 {
		list[i].Layout = Var
	}
}

// image is [N C …] as [N C H W].
func image(t Tensor) Tensor {
	if len(t.Dims) == 4 {
		return t.nchw()
	}
	rest := int64(1)
	for _, d := range t.Dims[2:] {
		rest *= d
	}
	return t.reshape(t.Dims[0], t.Dims[1], rest, 1).nchw()
}

// lowerBatchNorm: the normalised value is rounded to y's type before the residual is added.
func lowerBatchNorm(b *builder) {
	x, y, a := image(b.in(0)), image(b.out(0)), b.op.Attrs
	c := x.Dims[1]
	running := func(i int) Tensor {
		if !b.hasOut(i) {
			t := b.temp(Float32, c)
			b.call("InplaceCopy", t, b.in(i))
			return t
		}
		return b.inherit(b.out(i), b.in(i))
	}
	mean, variance := running(3), running(4)
	b.call("BatchNorm", x, b.in(1), b.in(2), mean, variance, true, a.Float("momentum", 0.1), a.Float("eps", 1e-5), y,
		b.outOr(1, Float32, c), b.outOr(2, Float32, c))
	b.tail(y)
}

// tail adds the residual at input 5, and applies relu.
func (b *builder) tail(y Tensor) {
	if b.op.Attrs.Bool("add") {
		b.call("InplaceAdd", y, image(b.in(5)), number(1))
	}
	if b.op.Attrs.Bool("relu") {
		b.call("InplaceRelu", y)
	}
}

func lowerBatchNormInfer(b *builder) {
	x, y := image(b.in(0)), image(b.out(0))
	b.apart(y, []Tensor{x}, func(dst Tensor) {
		b.call("BatchNorm", x, b.in(1), b.in(2), b.in(3), b.in(4), false, 0.0, b.op.Attrs.Float("eps", 1e-5), dst, null{}, null{})
	})
	b.tail(y)
}

// lowerBatchNormBwd: g = dy + dy2, masked where y is 0, is dres.
func lowerBatchNormBwd(b *builder) {
	a := b.op.Attrs
	dy, x, gamma, mean := image(b.in(0)), image(b.in(1)), b.in(2), b.in(4)
	next := 6
	var y Tensor
	if a.Bool("relu") {
		y, next = image(b.in(next)), next+1
	}
	g := dy
	own := func() Tensor { // where g is made
		if b.hasOut(3) {
			return image(b.out(3))
		}
		t := b.temp(dy.DType, dy.Dims...)
		return t.nchw()
	}
	if a.Bool("sum") {
		to := own()
		b.call("Add", dy, image(b.in(next)), number(1), to)
		g = to
	}
	if a.Bool("relu") {
		to := g
		if !a.Bool("sum") {
			to = own()
		}
		b.call("ThresholdBackward", g, y, number(0), to)
		g = to
	}
	if g.Base == dy.Base && b.hasOut(3) {
		g = b.inherit(own(), dy)
	}
	dx := image(b.out(0))
	run := func(dst Tensor) {
		c := x.Dims[1]
		b.call("BatchNormBackward", g, x, gamma, mean, mean, mean, b.in(5), true, a.Float("eps", 1e-5), []bool{true, true, true}, dst,
			b.outOr(1, Float32, c), b.outOr(2, Float32, c))
	}
	if g.Base == dy.Base {
		b.apart(dx, []Tensor{dy}, run)
	} else {
		run(dx)
	}
}
