//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// attentionCases are all kinds of attention, and before each a product of matrices: both may use the matrix unit of the processor, which each has
// to set up for itself.
func attentionCases(t npu.DType) []opCase {
	q, k, lse, seg := npu.D(t, 2, 70, 4, 32), npu.D(t, 2, 70, 2, 32), npu.D(npu.F32, 2, 4, 70), npu.D(npu.I32, 2, 70)
	runs := map[int]func(int) float64{3: func(i int) float64 { return float64(i / 29) }}
	back := map[int]func(int) float64{5: constant(4), 6: runs[3]}
	matmul := opCase{op: npu.Op{Kind: npu.MatMul, In: []npu.Desc{npu.D(t, 64, 96), npu.D(t, 96, 64)}, Out: []npu.Desc{npu.D(t, 64, 64)}}, scale: 10}
	one := npu.D(t, 2, 1, 4, 32)
	cache := npu.D(npu.F32, 2, 50, 2, 32)
	return []opCase{
		matmul,
		{
			op:   npu.Op{Kind: npu.Attention, Attrs: npu.Attrs{"scale": 0.2, "causal": true}, In: []npu.Desc{q, k, k}, Out: []npu.Desc{q, lse}},
			impl: "c:attention:",
		},
		matmul,
		{
			op: npu.Op{
				Kind:  npu.AttentionBwd,
				Attrs: npu.Attrs{"scale": 0.2, "causal": true, "seg": true},
				In:    []npu.Desc{q, q, k, k, q, lse, seg},
				Out:   []npu.Desc{q, k, k},
			},
			fill:  back,
			scale: 10,
			impl:  "c:attention_bwd:",
		},
		matmul,
		{
			op:   npu.Op{Kind: npu.Attention, Attrs: npu.Attrs{"scale": 0.2, "seg": true}, In: []npu.Desc{q, k, k, seg}, Out: []npu.Desc{q, lse}},
			fill: runs,
			impl: "c:attention:",
		},
		{
			op: npu.Op{
				Kind:  npu.AttentionCached,
				Attrs: npu.Attrs{"scale": 0.2},
				In:    []npu.Desc{one, cache, cache, npu.D(npu.I32, 2, 1)},
				Out:   []npu.Desc{one},
			},
			fill: map[int]func(int) float64{3: constant(49, 7)},
			impl: "c:attention_cached:",
		},
		{op: npu.Op{Kind: npu.CacheWrite, In: []npu.Desc{cache, npu.D(t, 2, 1, 2, 32), npu.D(npu.I32, 2, 1)}, Out: []npu.Desc{cache}},
			fill: map[int]func(int) float64{2: constant(3, -1)}, alias: map[int]int{0: 0}, impl: "c:cache_write:"},
	}
}

func TestAttention(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		for _, dt := range floatTypes {
			for i, c := range attentionCases(dt) {
				c.check(t, g, uint64(i))
			}
		}
	})
}

// Evaluation does not want the logarithms.
func TestAttentionWithoutLogarithms(t *testing.T) {
	g := newRig(t, testDevice(t))
	q := npu.D(npu.F32, 1, 9, 2, 16)
	op := must(
		g.d.Choose(npu.Op{Kind: npu.Attention, Attrs: npu.Attrs{"scale": 1.0}, In: []npu.Desc{q, q, q}, Out: []npu.Desc{q, npu.D(npu.F32, 1, 2, 9)}}),
	)(
		t,
	)
	p := g.alloc(q.PlainBytes())
	for i := range 288 {
		put(p.Buf.Host(), i, npu.F32, 1)
	}
	o := g.alloc(q.PlainBytes())
	g.launch(op, []npu.Ptr{p, p, p, o, {}})
	g.sync()
	if v := get(o.Buf.Host(), 5, npu.F32); v != 1 {
		t.Errorf("the mean of ones is %g", v)
	}
}
