package compress

import (
	"math"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"github.com/gotrain/gotrain/npu"
)

func floatsAt(b []byte, at, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[at])), n)
}

func valuesAt(b []byte, at, n int) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(&b[at])), n)
}

// feedback are the residuals of n values from at on, in blocks from block on; nil without error feedback.
func (b *int8Bucket) feedback(f *reduce.Feedback, at, n, block, blocks int) *reduce.Feedback {
	r := &b.lost
	if r.value[0] == nil {
		return nil
	}
	old, now := b.c.now, 1-b.c.now
	*f = reduce.Feedback{Old: r.value[old][at : at+n], New: r.value[now][at : at+n], OldScale: r.scale[old][block : block+blocks],
		NewScale: r.scale[now][block : block+blocks], Unit: b.c.unit}
	return f
}

// encode rounds the parts of the other ranks, which own them.
func (b *int8Bucket) encode() {
	var f reduce.Feedback
	for r, spans := range b.l.spans {
		if r == b.c.rank {
			continue
		}
		to := b.send[r*b.l.part : (r+1)*b.l.part]
		for _, s := range spans {
			x := b.x[s.at : s.at+s.n]
			if s.raw {
				copy(floatsAt(to, s.value, s.n), x)
				continue
			}
			q, scale := valuesAt(to, s.value, s.n), floatsAt(to, s.scale, s.blocks)
			if reduce.Quantise(b.l.block, q, scale, x, b.feedback(&f, s.at, s.n, s.block, s.blocks)) {
				b.sample(s, x, q, scale)
			}
		}
	}
}

// sample measures the loss of rounding on some blocks.
func (b *int8Bucket) sample(s span, x []float32, q []int8, scale []float32) {
	each(s.blocks, b.c.number+int64(s.block), func(i int) {
		from, to := i*b.l.block, min((i+1)*b.l.block, s.n)
		for j := from; j < to; j++ {
			y := x[j]
			if r := &b.lost; r.value[0] != nil {
				y += float32(r.value[b.c.now][s.at+j]) * r.scale[b.c.now][s.block+i] * b.c.unit
			}
			b.error.add(x[j], y-float32(q[j])*scale[i])
		}
	})
}

// stretch is how many values are summed before they are rounded: they stay in the cache.
const stretch = 1 << 14

// sum adds the own part over all ranks, in rank order, and rounds the result.
func (b *int8Bucket) sum() {
	own, part := b.c.rank, b.l.part
	to := b.send[own*part : (own+1)*part]
	for _, s := range b.l.spans[own] {
		x := b.x[s.at : s.at+s.n]
		if s.raw {
			for r := range b.source {
				b.source[r] = unsafe.Pointer(&b.recv[r*part+s.value])
			}
			b.source[own] = unsafe.Pointer(&x[0])
			reduce.Many(comm.Sum, npu.F32, s.n, unsafe.Pointer(&x[0]), nil, b.source)
			copy(floatsAt(to, s.value, s.n), x)
			continue
		}
		b.sumRounded(s, x, to)
	}
}

func (b *int8Bucket) sumRounded(s span, x []float32, to []byte) {
	var f reduce.Feedback
	per := max(stretch/b.l.block, 1)
	for i := 0; i < s.blocks; i += per {
		blocks := min(per, s.blocks-i)
		from := i * b.l.block
		n := min(blocks*b.l.block, s.n-from)
		v := x[from : from+n]
		reduce.SumQuantised(b.l.block, v, b.recv, s.value+from, s.scale+4*i, b.l.part, b.c.ranks, b.c.rank)
		reduce.Quantise(b.l.block, valuesAt(to, s.value+from, n), floatsAt(to, s.scale+4*i, blocks), v,
			b.feedback(&f, s.at+from, n, s.block+i, blocks))
	}
}

// decode restores the bucket from the sums of all parts. All ranks, the owner too, decode the same bytes.
func (b *int8Bucket) decode() {
	finite := true
	for r, spans := range b.l.spans {
		from := b.send[r*b.l.part : (r+1)*b.l.part]
		for _, s := range spans {
			x := b.x[s.at : s.at+s.n]
			if !s.raw {
				finite = reduce.Dequantise(b.l.block, x, valuesAt(from, s.value, s.n), floatsAt(from, s.scale, s.blocks)) && finite
				continue
			}
			copy(x, floatsAt(from, s.value, s.n))
			finite = finite && allFinite(x)
		}
	}
	if b.finite = finite; !finite { // the padding of a block without values must not spoil the next step
		for _, g := range b.gaps {
			clear(b.x[g.From : g.From+g.Elems])
		}
	}
}

func allFinite(x []float32) bool {
	var most uint32
	for _, v := range x {
		most = max(most, math.Float32bits(v)&0x7fffffff)
	}
	return most < 0x7f800000
}
