package lower

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Losses with targets in f32. The fused operators (MseLoss, BinaryCrossEntropyWithLogits) do not fit: they want targets of the type of x, and sum or average
// all elements, while rows have weights here. So they are composed, in f32.
var pairedRules = map[string]rule{
	npu.OneHot:              {lower: lowerOneHot, needs: []string{"OneHot"}},
	npu.SoftCrossEntropy:    {lower: lowerSoftCrossEntropy, needs: []string{"LogSumExp"}},
	npu.SoftCrossEntropyBwd: {lower: lowerSoftCrossEntropyBwd},
	npu.BCE:                 {lower: lowerBCE},
	npu.BCEBwd:              {lower: lowerBCEBwd},
	npu.MSE:                 {lower: lowerMSE},
	npu.MSEBwd:              {lower: lowerMSEBwd},
}

// numbers is a row of constants, f32.
func (b *builder) numbers(v []float64) Tensor {
	n := int64(len(v))
	return b.constant(fmt.Sprintf("f32 %v", v), Float32, func() []byte { return floats(n, func(i int64) float64 { return v[i] }) }, n)
}

// lowerOneHot: a label outside of the classes makes its row NaN, as the operators do not report it.
func lowerOneHot(b *builder) {
	a, y := b.op.Attrs, b.out(0)
	n, classes := y.Dims[0], y.Dims[1]
	l, w := b.labels(b.in(0), classes), a.Floats("weights")
	b.call("OneHot", l.safe, int(classes), b.value(a.Float("on", 1)), b.value(a.Float("off", 0)), -1, y)
	rows, valid := b.outOr(1, Float32, n), b.temp(Float32, n)
	wrong, not := b.temp(Bool, n), b.temp(Bool, n)
	b.call("Cast", l.ok, Float32, valid)
	b.call("NeTensor", l.raw, l.safe, wrong)
	b.call("InplaceMaskedFillScalar", valid, wrong, number(math.NaN()))
	b.call("LogicalNot", l.ok, not)
	b.call("InplaceMaskedFillScalar", valid, not, number(0))
	b.call("InplaceMul", y, valid.unsqueeze(1))
	if w == nil {
		b.call("InplaceCopy", rows, valid)
		return
	}
	b.call("InplaceMul", y, b.numbers(w).reshape(1, classes))
	b.call("Mul", valid, b.picked(b.numbers(w).reshape(1, classes).broadcast(n, classes), l.safe).squeeze(1), rows)
}

func lowerSoftCrossEntropy(b *builder) {
	x, t := b.full(b.in(0)), b.in(1)
	n, c := x.Dims[0], x.Dims[1]
	lse, each, rows := b.outOr(2, Float32, n), b.temp(Float32, n, c), b.temp(Float32, n)
	b.call("LogSumExp", x, []int64{1}, false, lse)
	b.call("Sub", lse.unsqueeze(1), x, number(1), each)
	b.call("InplaceMul", each, t)
	zero := b.temp(Bool, n, c)
	b.call("EqScalar", t, number(0), zero)
	b.call("InplaceMaskedFillScalar", each, zero, number(0)) // a logit of -inf counts for nothing there
	b.call("ReduceSum", each, []int64{1}, false, Float32, rows)
	b.call("ReduceSum", rows, []int64{0}, false, Float32, b.out(0))
	mass, some := b.temp(Float32, n), b.temp(Bool, n)
	b.call("ReduceSum", t, []int64{1}, false, Float32, mass)
	b.call("NeScalar", mass, number(0), some)
	b.call("Cast", some, Float32, mass)
	b.call("ReduceSum", mass, []int64{0}, false, Float32, b.outOr(1, Float32))
}

func lowerSoftCrossEntropyBwd(b *builder) {
	x, t, lse, dloss := b.in(0), b.in(1), b.in(2), b.in(3)
	mass, none := b.temp(Float32, x.Dims[0]), b.temp(Bool, x.Dims[0], 1)
	b.call("ReduceSum", t, []int64{1}, false, Float32, mass)
	b.call("EqScalar", mass.unsqueeze(1), number(0), none)
	b.into(b.out(0), func(g Tensor) {
		b.call("Sub", x, lse.unsqueeze(1), number(1), g)
		b.call("Exp", g, g)
		b.call("InplaceMul", g, mass.unsqueeze(1))
		b.call("InplaceMaskedFillScalar", g, none, number(0))
		b.call("InplaceSub", g, t, number(1))
		b.call("InplaceMul", g, dloss)
	})
}

// paired describes the arguments of a loss of single elements as rows [N K].
type paired struct {
	x, t   Tensor
	weight *Tensor // [N]
	pos    *Tensor // [1 K] or one number
	last   int     // the input behind them
}

func (b *builder) paired() paired {
	x := b.in(0)
	n := x.Dims[0]
	k := x.Elems() / n
	p := paired{x: x.reshape(n, k), t: b.in(1).reshape(n, k), last: 2}
	if b.op.Attrs.Bool("weighted") {
		w := b.in(2)
		p.weight, p.last = &w, 3
	}
	if v := b.op.Attrs.Floats("pos_weight"); len(v) == 1 {
		w := b.value(v[0])
		p.pos = &w
	} else if v != nil {
		w := b.numbers(v).reshape(1, int64(len(v))).broadcast(k/int64(len(v)), int64(len(v)))
		p.pos = &w
	}
	return p
}

// positive multiplies t [N K] by the weight of positive targets.
func (b *builder) positive(p paired, t Tensor) {
	switch {
	case p.pos == nil:
	case len(p.pos.Dims) == 0:
		b.call("InplaceMul", t, *p.pos)
	default:
		s := p.pos.Dims
		b.call("InplaceMul", t.reshape(t.Dims[0], s[0], s[1]), p.pos.unsqueeze(0))
	}
}

// sumRows reduces losses [N K] to loss and count. Rows of weight 0 count for nothing, whatever is in them.
func (b *builder) sumRows(p paired, each Tensor) {
	n := each.Dims[0]
	rows := b.temp(Float32, n)
	b.call("ReduceSum", each, []int64{1}, false, Float32, rows)
	count := b.outOr(1, Float32)
	if p.weight == nil {
		b.call("InplaceFillScalar", count, number(float64(n)))
	} else {
		b.call("InplaceMul", rows, *p.weight)
		b.call("InplaceMaskedFillScalar", rows, b.weightless(p), number(0))
		b.call("ReduceSum", *p.weight, []int64{0}, false, Float32, count)
	}
	b.call("ReduceSum", rows, []int64{0}, false, Float32, b.out(0))
}

func (b *builder) weightless(p paired) Tensor {
	none := b.temp(Bool, p.weight.Dims...)
	b.call("EqScalar", *p.weight, number(0), none)
	return none
}

// seed multiplies gradients [N K] by the weights of rows and the gradient of the loss.
func (b *builder) seed(p paired, g Tensor) {
	if p.weight != nil {
		b.call("InplaceMul", g, p.weight.unsqueeze(1))
		b.call("InplaceMaskedFillScalar", g, b.weightless(p).unsqueeze(1), number(0))
	}
	b.call("InplaceMul", g, b.in(p.last))
}

// lowerBCE: pos·t·softplus(-x) + (1-t)·softplus(x), where softplus(x) is max(x, 0) + log(1 + e^-|x|).
func lowerBCE(b *builder) {
	p := b.paired()
	x, n, k := b.full(p.x), p.x.Dims[0], p.x.Dims[1]
	tail, up, down, rest := b.temp(Float32, n, k), b.temp(Float32, n, k), b.temp(Float32, n, k), b.temp(Float32, n, k)
	b.call("Abs", x, tail)
	b.call("Neg", tail, tail)
	b.call("Exp", tail, tail)
	b.call("InplaceAdds", tail, number(1), number(1))
	b.call("Log", tail, tail)
	b.call("Relu", x, up)
	b.call("InplaceAdd", up, tail, number(1))
	b.call("Neg", x, down)
	b.call("InplaceRelu", down)
	b.call("InplaceAdd", down, tail, number(1))
	b.call("InplaceMul", down, p.t)
	b.positive(p, down)
	b.call("Muls", p.t, number(-1), rest)
	b.call("InplaceAdds", rest, number(1), number(1))
	b.call("InplaceMul", up, rest)
	b.call("InplaceAdd", up, down, number(1))
	b.sumRows(p, up)
}

// lowerBCEBwd: (pos·t + 1 - t)·sigmoid(x) - pos·t.
func lowerBCEBwd(b *builder) {
	p := b.paired()
	n, k := p.x.Dims[0], p.x.Dims[1]
	on, both := b.temp(Float32, n, k), b.temp(Float32, n, k)
	b.call("InplaceCopy", on, p.t)
	b.positive(p, on)
	b.call("Sub", on, p.t, number(1), both)
	b.call("InplaceAdds", both, number(1), number(1))
	b.into(b.out(0), func(g Tensor) {
		g = g.reshape(n, k)
		b.call("Sigmoid", b.full(p.x), g)
		b.call("InplaceMul", g, both)
		b.call("InplaceSub", g, on, number(1))
		b.seed(p, g)
	})
}

func lowerMSE(b *builder) {
	p := b.paired()
	d := b.temp(Float32, p.x.Dims...)
	b.call("Sub", p.x, p.t, number(1), d)
	b.call("Mul", d, d, d)
	b.sumRows(p, d)
}

func lowerMSEBwd(b *builder) {
	p := b.paired()
	b.into(b.out(0), func(g Tensor) {
		g = g.reshape(p.x.Dims...)
		b.call("Sub", p.x, p.t, number(1), g)
		b.call("InplaceMuls", g, number(2))
		b.seed(p, g)
	})
}
