package compress

import (
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
)

// pieceValues is how many values a piece has, at most.
const pieceValues = 1 << 16

// span is a stretch of blocks of one sort within a piece.
type span struct {
	raw    bool
	at, n  int // elements of the bucket
	block  int // index of the first block in the bucket
	blocks int
	scale  int // bytes from the beginning of the part to the scales; -1 if raw
	value  int // bytes from the beginning of the part to the values
}

// layout is how a bucket travels: in one part for each rank, each part a whole number of blocks. A part is a sequence of pieces, and a piece has the
// scales of its blocks and then their values: float32 for raw blocks, 8 bits for the others. Parts are equally long; the last bytes of a part may be
// unused. All of it follows from the plan, so it is the same on all ranks.
type layout struct {
	elems, block int
	raw          []bool   // by block
	part         int      // bytes of a part
	spans        [][]span // by rank
	payload      int      // bytes of all parts without unused ones
}

// newLayout lays out bucket k for a number of ranks.
func newLayout(p *bucket.Plan, k, block, ranks int, raw func(string) bool) *layout {
	b := &p.Buckets[k]
	l := &layout{elems: int(b.Elems), block: block}
	l.raw = make([]bool, reduce.Blocks(l.elems, block))
	for _, pl := range b.Places {
		if raw == nil || !raw(p.Params[pl.Param].Name) {
			continue
		}
		first, last := int(pl.Offset)/4/block, (int(pl.Offset+pl.Bytes)/4-1)/block
		for i := first; i <= last; i++ {
			l.raw[i] = true
		}
	}
	l.cut(ranks)
	return l
}

// length is the number of values of block i.
func (l *layout) length(i int) int { return min(l.block, l.elems-i*l.block) }

// bytes is the encoded size of block i.
func (l *layout) bytes(i int) int {
	if l.raw[i] {
		return 4 * l.length(i)
	}
	return 4 + l.length(i)
}

// cut divides the blocks into contiguous parts of nearly equal encoded size.
func (l *layout) cut(ranks int) {
	total := 0
	for i := range l.raw {
		total += l.bytes(i)
	}
	l.payload, l.spans = total, make([][]span, ranks)
	i, done := 0, 0
	for r := range ranks {
		first := i
		for i < len(l.raw) && (r == ranks-1 || done < total*(r+1)/ranks) {
			done += l.bytes(i)
			i++
		}
		var size int
		l.spans[r], size = l.lay(first, i)
		l.part = max(l.part, size)
	}
	l.part = (l.part + 63) &^ 63
}

// lay places the blocks of a part.
func (l *layout) lay(first, end int) (spans []span, size int) {
	per := pieceValues / l.block
	for from := first; from < end; from += per {
		to := min(from+per, end)
		scale, value := size, size
		for i := from; i < to; i++ {
			if !l.raw[i] {
				value += 4
			}
		}
		for i := from; i < to; i++ {
			n := l.length(i)
			if last := len(spans) - 1; i > from && spans[last].raw == l.raw[i] {
				spans[last].n, spans[last].blocks = spans[last].n+n, spans[last].blocks+1
			} else {
				s := span{raw: l.raw[i], at: i * l.block, n: n, block: i, blocks: 1, scale: -1, value: value}
				if !s.raw {
					s.scale = scale
				}
				spans = append(spans, s)
			}
			if l.raw[i] {
				value += 4 * n
			} else {
				value, scale = value+n, scale+4
			}
		}
		size = (value + 3) &^ 3
	}
	return spans, size
}

// Cost is what a codec takes for a plan of buckets.
type Cost struct {
	Residuals int64 // bytes of memory that lasts
	Buffers   int64 // bytes of memory for encoded gradients
	Sent      int64 // bytes that encoded gradients have: a step sends 2 (ranks-1) / ranks of it
	Raw       int64 // the same as float32
}

// Costs tells what a codec takes, without opening it.
func Costs(name string, o Options, p *bucket.Plan, ranks int) (c Cost) {
	if o.Block == 0 {
		o.Block = defaultBlock
	}
	for k := range p.Buckets {
		b := &p.Buckets[k]
		c.Raw += b.Bytes
		switch name {
		case "f16", "bf16":
			c.Buffers, c.Sent = c.Buffers+b.Bytes/2, c.Sent+b.Bytes/2
		case "int8":
			l := newLayout(p, k, o.Block, ranks, o.Raw)
			all := int64(l.part * ranks)
			c.Buffers, c.Sent = c.Buffers+2*all, c.Sent+all
			if !o.NoFeedback {
				c.Residuals += 2 * (2*b.Elems + 4*int64(len(l.raw)))
			}
		default:
			c.Sent += b.Bytes
		}
	}
	return c
}
