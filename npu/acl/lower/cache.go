package lower

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// The kinds of generation are composed in f32, the type of the cache: training is what these devices are for.
var cacheRules = map[string]rule{
	npu.AttentionCached: {lower: lowerAttentionCached, needs: []string{"Matmul", "Softmax"}},
	npu.CacheWrite:      {lower: lowerCacheWrite, needs: []string{"IndexSelect", "Amax"}},
}

// lowerAttentionCached keeps the scores [B G R·S T], R being the number of query heads of a key head.
func lowerAttentionCached(b *builder) {
	q, k, v, pos, o := b.in(0), b.in(1), b.in(2), b.in(3), b.out(0)
	n, s, h, d := q.Dims[0], q.Dims[1], q.Dims[2], q.Dims[3]
	t, g := k.Dims[1], k.Dims[2]
	r := h / g
	k, v = b.full(k), b.full(v)
	grouped := func(t Tensor) Tensor { return t.reshape(n, s, g, r, d).permute(0, 2, 3, 1, 4) }
	qf := b.temp(Float32, n, g, r, s, d)
	b.call("InplaceCopy", qf, grouped(q))
	score, p := b.temp(Float32, n, g, r*s, t), b.temp(Float32, n, g, r*s, t)
	b.call("Matmul", qf.reshape(n, g, r*s, d), k.permute(0, 2, 3, 1), score, b.cube())
	b.call("InplaceMuls", score, number(b.op.Attrs.Float("scale", 0)))
	hidden, some, sees := b.temp(Bool, n, 1, 1, s, t), b.temp(Bool, n, s), b.temp(Float32, n, s)
	b.call("GtTensor", b.count(t).reshape(1, 1, 1, 1, t), pos.reshape(n, 1, 1, s, 1), hidden)
	b.call("InplaceMaskedFillScalar", score.reshape(n, g, r, s, t), hidden, number(-1e30))
	b.call("Softmax", score, -1, p)
	b.call("GeScalar", pos, integer(Int32, 0), some) // of a query that sees nothing, the softmax is that of equal scores
	b.call("Cast", some, Float32, sees)
	b.call("InplaceMul", p.reshape(n, g, r, s, t), sees.reshape(n, 1, 1, s, 1))
	of := b.temp(Float32, n, g, r*s, d)
	b.call("Matmul", p, v.permute(0, 2, 1, 3), of, b.cube())
	b.call("InplaceCopy", grouped(o), of.reshape(n, g, r, s, d))
}

// lowerCacheWrite asks for each row of the cache which new row it becomes: the last one with its position, if any. Scattering would need a place for rows
// with a negative position, and an order for rows with the same one.
func lowerCacheWrite(b *builder) {
	cache, x, pos, out := b.in(0), b.in(1), b.in(2), b.out(0)
	n, t, s := cache.Dims[0], cache.Dims[1], x.Dims[1]
	width := cache.Dims[2] * cache.Dims[3]
	here, rank := b.temp(Bool, n, t, s), b.temp(Float32, n, t, s)
	b.call("EqTensor", pos.reshape(n, 1, s), b.count(t).reshape(1, t, 1), here)
	b.call("Cast", here, Float32, rank)
	order := b.constant(fmt.Sprintf("f32 1…%d", s), Float32, func() []byte { return floats(s, func(i int64) float64 { return float64(i + 1) }) }, s)
	b.call("InplaceMul", rank, order)
	last, from := b.temp(Float32, n, t), b.temp(Float32, n, t)
	b.call("Amax", rank, []int64{2}, false, last) // 0: none
	hit, at := b.temp(Bool, n, t), b.temp(Int32, n, t)
	b.call("GtScalar", last, number(0), hit)
	begin := b.constant(fmt.Sprintf("f32 %d·i-1 of %d", s, n), Float32, func() []byte {
		return floats(n, func(i int64) float64 { return float64(i*s - 1) })
	}, n, 1)
	b.call("Add", last, begin, number(1), from)
	b.call("Cast", from, Int32, at)
	safe := b.temp(Int32, n, t)
	b.call("Clamp", at, integer(Int32, 0), integer(Int32, int(n*s-1)), safe)
	rows := b.temp(x.DType, n*t, width)
	b.call("IndexSelect", x.reshape(n*s, width), 0, safe.flat(), rows)
	b.call("SWhere", hit.reshape(n*t, 1), b.as(rows, cache.DType), cache.reshape(n*t, width), out.reshape(n*t, width))
}
