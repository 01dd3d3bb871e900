//go:build cgo && linux && (amd64 || arm64)

package kern

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.Embedding, prepareEmbedding)
	register(npu.EmbeddingBwd, prepareEmbeddingBwd)
}

// allPlain reports whether all arguments are plain.
func allPlain(op npu.Op) bool {
	for _, d := range args(op) {
		if d.Layout != npu.Plain {
			return false
		}
	}
	return true
}

// sequence is the extent of the last axis of ids, for positions in errors.
func sequence(ids npu.Desc) int64 {
	if n := len(ids.Shape); n > 0 {
		return int64(max(ids.Shape[n-1], 1))
	}
	return 1
}

// prepareEmbedding copies rows of any type.
func prepareEmbedding(op npu.Op) *Call {
	ids, w := op.In[0], op.In[1]
	if !allPlain(op) || ids.DType != npu.I32 || w.DType != op.Out[0].DType {
		return nil
	}
	return &Call{kernel: "embedding", n: []int64{ids.Shape.Elems(), int64(w.Shape[0]), int64(w.Shape[1] * w.DType.Size()), sequence(ids)}}
}

func prepareEmbeddingBwd(op npu.Op) *Call {
	dt, ok := act(op.In[0].DType)
	dw := op.Out[0]
	if !ok || !allPlain(op) || op.In[1].DType != npu.I32 || !plainF32(op.In[2:]...) || !plainF32(dw) {
		return nil
	}
	c := &Call{
		kernel: "embedding_bwd",
		dt:     dt,
		n:      []int64{op.In[1].Shape.Elems(), int64(dw.Shape[0]), int64(dw.Shape[1]), sequence(op.In[1])},
		slots:  []int{0, 1, 3},
	}
	if len(op.In) == 3 {
		c.slots = []int{0, 1, 2, 3}
	}
	return c
}
