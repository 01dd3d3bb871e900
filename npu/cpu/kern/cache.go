//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.AttentionCached, prepareCached)
	register(npu.CacheWrite, prepareCacheWrite)
}

// Generation divides the keys into chunks of at least minChunk, until there are enough units for cachedUnits threads.
const (
	minChunk    = 256
	cachedUnits = 16
)

func prepareCached(op npu.Op) *Call {
	q, k, pos := op.In[0], op.In[1], op.In[3]
	dt, ok1 := act(q.DType)
	kv, ok2 := act(k.DType)
	if !ok1 || !ok2 || !allPlain(op) || !alike(q, op.Out[0]) || !alike(k, op.In[2]) || pos.DType != npu.I32 || q.Shape.Elems() == 0 || k.Shape.Elems() == 0 {
		return nil
	}
	b, s, h, d, t, g := int64(q.Shape[0]), int64(q.Shape[1]), int64(q.Shape[2]), int64(q.Shape[3]), int64(k.Shape[1]), int64(k.Shape[2])
	chunks := max(1, min((cachedUnits+b*s*g-1)/(b*s*g), t/minChunk))
	chunk := (t + chunks - 1) / chunks
	piece := 2*((d+15)/16*16) + 16
	return &Call{
		kernel: "attention_cached", dt: dt, f: []float64{op.Attrs.Float("scale", 1)},
		n: []int64{b, s, t, h, g, d, chunk, chunks, int64(kv)}, workspace: 4 * b * s * h * chunks * piece,
	}
}

func prepareCacheWrite(op npu.Op) *Call {
	cache, x, pos := op.In[0], op.In[1], op.In[2]
	dt, ok := act(x.DType)
	if !ok || !allPlain(op) || !plainF32(cache, op.Out[0]) || pos.DType != npu.I32 {
		return nil
	}
	return &Call{
		kernel: "cache_write", dt: dt, inplace: []int{0},
		n: []int64{int64(x.Shape[0]), int64(x.Shape[1]), int64(cache.Shape[1]), int64(x.Shape[2]) * int64(x.Shape[3])},
	}
}
