package lower

import "github.com/gotrain/gotrain/npu"

var swiGLURules = map[string]rule{
	npu.SwiGLU:    {lower: lowerSwiGLU},
	npu.SwiGLUBwd: {lower: lowerSwiGLUBwd},
}

// lowerSwiGLU: the fused SwiGlu takes gate and up as one tensor; they rarely are.
func lowerSwiGLU(b *builder) {
	gate, y := b.in(0), b.out(0)
	t := b.temp(gate.DType, gate.Dims...)
	b.call("Silu", gate, t)
	b.call("Mul", t, b.in(1), y)
}

// lowerSwiGLUBwd reads dy, gate and up for the last time before it writes to the result that may lie over them.
func lowerSwiGLUBwd(b *builder) {
	dy, gate, up, dgate := b.in(0), b.in(1), b.in(2), b.out(0)
	ds, s := b.temp(dy.DType, dy.Dims...), b.temp(dy.DType, dy.Dims...)
	b.call("Mul", dy, up, ds)
	if b.hasOut(1) {
		b.call("Silu", gate, s)
		b.call("Mul", dy, s, b.out(1))
	}
	b.call("SiluBackward", ds, gate, dgate)
}
