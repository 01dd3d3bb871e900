package roofline

import (
	"strings"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
)

// Cost is what an op must do, whatever kernel executes it.
type Cost struct {
	FLOP   int64     `json:"flop"` // a multiply-add is two
	Reads  int64     `json:"read_bytes"`
	Writes int64     `json:"written_bytes"`
	Type   npu.DType `json:"-"` // of the factors
}

// Bytes is what is read and written.
func (c Cost) Bytes() int64 { return c.Reads + c.Writes }

// CostOf counts what an op must do: its operations, and the bytes that it has to read and to write once each.
func CostOf(o npu.Op) Cost {
	c := Cost{FLOP: flop(o), Type: npu.F32}
	for _, d := range o.In {
		c.Reads += d.PlainBytes()
	}
	for _, d := range o.Out {
		c.Writes += d.PlainBytes()
	}
	if len(o.In) > 0 {
		c.Type = widest(o)
	}
	if touch := touches[o.Kind]; touch != nil {
		touch(o, &c)
	}
	return c
}

// widest is the type of activations: that of the largest floating-point input.
func widest(o npu.Op) npu.DType {
	best, most := npu.F32, int64(-1)
	for _, d := range o.In {
		if n := d.Shape.Elems(); n > most && (d.DType == npu.F32 || d.DType == npu.BF16 || d.DType == npu.F16) {
			best, most = d.DType, n
		}
	}
	return best
}

// flat are the operations of an element in the kinds that graphs do not have.
var flat = map[string]int64{npu.SGD: 6, npu.AdamW: 15, npu.LARS: 8, npu.LAMBMoments: 17, npu.LAMB: 9, npu.SumSq: 2, npu.Scale: 1, npu.EMA: 2}

func flop(o npu.Op) int64 {
	if n, ok := flat[o.Kind]; ok {
		return n * most(o.In)
	}
	k, err := op.Lookup(o.Kind)
	if err == nil && k.FLOPs != nil {
		return int64(float64(k.FLOPs(o)) * inner(o))
	}
	return most(o.Out)
}

// most is the number of elements of the largest tensor.
func most(ds []npu.Desc) (n int64) {
	for _, d := range ds {
		n = max(n, d.Shape.Elems())
	}
	return n
}

// touches corrects the bytes of kinds that need only a part of their arguments.
var touches = map[string]func(o npu.Op, c *Cost){
	npu.Embedding:       func(o npu.Op, c *Cost) { c.Reads = o.In[0].PlainBytes() + o.Out[0].PlainBytes() }, // rows of the table
	npu.EmbeddingBwd:    touchEmbedding,
	npu.AttentionCached: func(o npu.Op, c *Cost) { c.Reads = o.In[0].PlainBytes() }, // at the first position it sees one row of a cache
	npu.CacheWrite:      func(o npu.Op, c *Cost) { c.Reads, c.Writes = o.In[1].PlainBytes(), o.In[1].PlainBytes() },
	npu.Slice:           func(o npu.Op, c *Cost) { c.Reads = c.Writes },
	npu.TopK:            func(o npu.Op, c *Cost) { c.Reads = o.In[0].PlainBytes() },
	npu.Conv2D:          func(o npu.Op, c *Cost) { c.Reads -= unseen(o, o.In[0]) },
	npu.Conv2DBwdWeights: func(o npu.Op, c *Cost) {
		c.Reads -= unseen(o, o.In[0])
	},
	npu.BatchNormBwd: func(o npu.Op, c *Cost) {
		if o.Attrs.Bool("own_y") && len(o.In) > 6 { // the sign of y follows from x
			c.Reads -= o.In[6].PlainBytes()
		}
	},
}

// touchEmbedding: with a sum so far, only rows that occur are changed.
func touchEmbedding(o npu.Op, c *Cost) {
	if o.Attrs.Bool("add") {
		rows := o.In[0].PlainBytes()
		c.Reads, c.Writes = rows+o.In[1].PlainBytes(), 0
	}
}

// unseen are the bytes of pixels that no window contains, where windows are smaller than the stride.
func unseen(o npu.Op, x npu.Desc) int64 {
	w := o.Attrs.Ints("w_shape")
	if len(w) == 0 && len(o.In) > 1 {
		w = o.In[1].Shape
	}
	stride := o.Attrs.Ints("stride")
	if len(w) != 4 || len(stride) != 2 {
		return 0
	}
	seen := 1.0
	for i, s := range stride {
		seen *= min(1, float64(w[2+i])/float64(max(1, s)))
	}
	return int64(float64(x.PlainBytes()) * (1 - seen))
}

// inner is the part of a convolution's products that are not with the zeros around a picture; kernels leave those out.
func inner(o npu.Op) float64 {
	var x, y, w npu.Shape
	switch {
	case len(o.In) < 2 || len(o.Out) < 1:
		return 1
	case o.Kind == npu.Conv2D:
		x, w, y = o.In[0].Shape, o.In[1].Shape, o.Out[0].Shape
	case o.Kind == npu.Conv2DBwdData:
		y, w, x = o.In[0].Shape, o.In[1].Shape, o.Out[0].Shape
	case o.Kind == npu.Conv2DBwdWeights:
		x, y, w = o.In[0].Shape, o.In[1].Shape, o.Out[0].Shape
	}
	stride, pad, dilation := o.Attrs.Ints("stride"), o.Attrs.Ints("pad"), o.Attrs.Ints("dilation")
	if len(x) != 4 || len(y) != 4 || len(w) != 4 {
		return 1
	}
	part := 1.0
	for i := range 2 {
		step, before, apart := 1, 0, 1
		if len(stride) == 2 {
			step = stride[i]
		}
		if len(pad) == 4 {
			before = pad[i]
		}
		if len(dilation) == 2 {
			apart = max(1, dilation[i])
		}
		in, all := 0, 0
		for at := range y[2+i] {
			for k := range w[2+i] {
				all++
				if p := at*step - before + k*apart; p >= 0 && p < x[2+i] {
					in++
				}
			}
		}
		part *= float64(in) / float64(max(1, all))
	}
	return part
}

// ease is by how much a kernel may do fewer operations than its op has, and the type of the factors that it multiplies. Winograd's convolutions
// (arXiv 1509.09308) need 36 products where 16 results of a 3×3 filter have 144, or 16 instead of 36; the larger tiles may multiply float32 for every type.
func ease(o npu.Op, impl string, t npu.DType) (float64, npu.DType) {
	switch name := o.Attrs.Str(npu.AttrAlgorithm); {
	case name == npu.Winograd2:
		return 2.25, t
	case name == npu.Winograd4BF16:
		return 4, t
	case name == npu.Winograd4:
		return 4, npu.F32
	case name != npu.Direct || strings.Contains(impl, "wino"):
		return 4, t
	}
	return 1, t
}
