package lower_test

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

func TestSlack(t *testing.T) {
	old, exact := version(8, 1, lower.A2).caps, version(8, 1, lower.A2).caps
	exact.Exact = true
	dw := op(npu.MatMul, npu.Attrs{"ta": true, "out": "f32"}, list{h(64, 32), h(64, 16)}, f(32, 16))
	bn := op(npu.BatchNormBwd, npu.Attrs{"sum": true}, list{h(8, 4), h(8, 4), f(4), f(4), f(4), f(4), h(8, 4)}, h(8, 4), f(4), f(4))
	ce := op(npu.LinearCrossEntropyBwd, npu.Attrs{}, list{h(8, 4), h(9, 4), i(8), f(8), f()}, h(8, 4), f(9, 4))
	for _, c := range []struct {
		name string
		op   npu.Op
		out  int
		caps lower.Caps
		want float64
	}{
		{"8.1 rounds to bf16", dw, 0, old, 2048},
		{"8.1 rounds to f16", as(dw, npu.F16), 0, old, 256},
		{"exact products", dw, 0, exact, 1},
		{"9.0", dw, 0, version(9, 0, lower.A2).caps, 1},
		{"f32 operands", as(dw, npu.F32), 0, old, 1},
		{"rounded logits, dx", ce, 0, old, 8},
		{"rounded logits, dw", ce, 1, old, 2048},
		{"rounded logits, f32", as(ce, npu.F32), 0, old, 1},
		{"logits on 9.0", ce, 0, version(9, 0, lower.A2).caps, 1},
		{"sum of gradients, dx", bn, 0, old, 1},
		{"sum of gradients, dgamma", bn, 1, version(9, 0, lower.A3).caps, 2048},
	} {
		if got := lower.Slack(c.op, c.out, c.caps); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
