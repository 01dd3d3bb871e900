package lower

import "github.com/gotrain/gotrain/npu"

var flatRules = map[string]rule{
	npu.SumSq: {lower: lowerSumSq, needs: []string{"LinalgVectorNorm", "IsFinite"}},
	npu.EMA:   {lower: lowerEMA, needs: []string{"InplaceAddcmul"}},
	npu.Scale: {lower: func(b *builder) { b.call("Mul", b.in(1), b.in(0), b.out(0)) }},
}

// lowerSumSq adds the square of the norm and the number of elements that are not finite. Elements in float64 are computed on the AI CPU, one at a time, so
// only the two numbers are.
func lowerSumSq(b *builder) {
	g, s := b.in(0), b.out(0)
	if len(b.op.In) > 1 {
		s = b.inherit(s, b.in(1))
	}
	axes := []int64{0}
	norm, sq := b.temp(Float32, 1), b.temp(Float32, 2)
	b.call("LinalgVectorNorm", g, number(2), axes, true, Float32, norm)
	b.call("Mul", norm, norm, sq.slice(0, 0, 1))
	fine, wrong := b.temp(Bool, g.Dims...), b.temp(Bool, g.Dims...)
	b.call("IsFinite", g, fine)
	b.call("LogicalNot", fine, wrong)
	b.call("ReduceSum", wrong, axes, true, Float32, sq.slice(0, 1, 2)) // of zeros, unless something is wrong: exact for any length
	b.call("InplaceAdd", s, b.as(sq, s.DType), number(1))
}

// lowerEMA: hyper is decay, 1-decay.
func lowerEMA(b *builder) {
	h := b.in(0).at
	avg := b.inherit(b.out(0), b.in(1))
	b.call("InplaceMul", avg, h(0))
	b.call("InplaceAddcmul", avg, b.in(2), h(1), number(1))
}
