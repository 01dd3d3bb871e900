package baseline

import (
	"bytes"
	"encoding/binary"
)

// inGo are the kernels in Go: the same bytes as those in C.
type inGo struct{}

func (inGo) unstuff(dst, src []byte) (written, used, marker int) {
	p := 0
	for p < len(src) {
		part := bytes.IndexByte(src[p:], 0xff)
		if part < 0 {
			part = len(src) - p
		}
		written += copy(dst[written:], src[p:p+part])
		if p += part; p == len(src) {
			break
		}
		for p+1 < len(src) && src[p+1] == 0xff { // fill bytes
			p++
		}
		if p+1 >= len(src) { // half a marker
			return written, len(src), 0xff
		}
		if m := src[p+1]; m != 0 {
			return written, p + 2, int(m)
		}
		dst[written] = 0xff
		written++
		p += 2
	}
	return written, p, 0
}

// bits are the next bits of the data: of buf, the upper n are valid.
type bits struct {
	src []byte
	p   int
	buf uint64
	n   int
}

// refill makes at least 56 bits valid. The padding behind the data lasts for an MCU.
func (b *bits) refill() {
	b.buf |= binary.BigEndian.Uint64(b.src[b.p:]) >> b.n
	b.p += (63 - b.n) >> 3
	b.n |= 56
}

func (b *bits) drop(n int) { b.buf, b.n = b.buf<<n, b.n-n }

// symbol reads a code of any length.
func (b *bits) symbol(t *huffman) (sym int, ok bool) {
	c := int32(b.buf >> 48)
	for n := 1; n <= 16; n++ {
		if c < t.limit[n] {
			b.drop(n)
			return int(t.syms[(c>>(16-n)+t.shift[n])&255]), true
		}
	}
	return 0, false
}

func (b *bits) value(size int) int {
	if size == 0 {
		return 0
	}
	v := int(b.buf >> (64 - size))
	b.drop(size)
	return extend(v, size)
}

// longer reads the value that follows an entry of the table which does not hold it.
func (b *bits) longer(t *huffman, e int32) (advance, value int, ok bool) {
	size, n := int(e>>16), int(e&31)
	advance = int(e >> 8 & 255)
	if n > 0 {
		b.drop(n)
	} else {
		sym, ok := b.symbol(t)
		if !ok {
			return 0, 0, false
		}
		size, advance = sym&15, symAdvance(sym)
	}
	return advance, b.value(size), true
}

// diff reads the difference of a first coefficient.
func (b *bits) diff(t *huffman) (v int, ok bool) {
	b.refill()
	e := t.fast[b.buf>>(64-fastBits)]
	if e&long == 0 {
		b.drop(int(e & 31))
		return int(e >> 16), true
	}
	_, v, ok = b.longer(t, e)
	return v, ok
}

// coefficients reads the others into a block, nil: nowhere. any: there were some.
func (b *bits) coefficients(t *huffman, block *[64]int16) (any, ok bool) {
	k := 1
	for k < 64 {
		b.refill()
		e := t.fast[b.buf>>(64-fastBits)]
		advance, v := int(e>>8&255), int(e>>16)
		if e&long == 0 {
			b.drop(int(e & 31))
		} else if advance, v, ok = b.longer(t, e); !ok {
			return false, false
		}
		if k += advance; k > 64 {
			break
		}
		if block != nil {
			block[zigzag[k-1]] = int16(v)
		}
	}
	return k != 1+endOfBlock, k == 64 || k > endOfBlock
}

func (inGo) mcus(j *job, t *[8]huffman, src []byte, n int, first, last int64, whole bool, planes []byte) bool {
	b := bits{src: src}
	var pred [3]int
	across, _, _ := j.mcus()
	my, mx := int32(first/across), int32(first%across)
	for range last - first {
		for c := range j.comps {
			dc, ac, hs, vs := &t[j.dc[c]], &t[4+j.ac[c]], int32(1), int32(1)
			if c == 0 {
				hs, vs = j.hs, j.vs
			}
			for i := range hs * vs {
				d, ok := b.diff(dc)
				if !ok {
					return false
				}
				pred[c] = int(int32(pred[c] + d))
				if !j.block(&b, ac, int(c), my*vs+i/hs, mx*hs+i%hs, int16(pred[c]), planes) {
					return false
				}
			}
		}
		if b.p*8-b.n > n*8 {
			return false
		}
		if mx++; mx == int32(across) {
			mx, my = 0, my+1
		}
	}
	return !whole || n*8-(b.p*8-b.n) < 8
}

// block reads a block of component c, and transforms it if it is wanted.
func (j *job) block(b *bits, ac *huffman, c int, row, col int32, dc int16, planes []byte) bool {
	p := &j.c[c]
	if row < p.row0 || row >= p.row1 || col < p.col0 || col >= p.col1 {
		_, ok := b.coefficients(ac, nil)
		return ok
	}
	var block [64]int16
	any, ok := b.coefficients(ac, &block)
	if !ok {
		return false
	}
	block[0] = dc
	stride := int(p.col1-p.col0) * 8
	dst := planes[int(p.at)+int(row-p.row0)*8*stride+int(col-p.col0)*8:]
	if any {
		idct(&block, &j.quant[c], dst, stride)
	} else {
		flat(dc*int16(j.quant[c][0]), dst, stride)
	}
	return true
}
