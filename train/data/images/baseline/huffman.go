package baseline

import "bytes"

// fastBits is how many bits of the data a look-up takes.
const fastBits = 11

// huffman is a table of codes as the decoder wants them. C has the same struct.
//
// fast has an entry for every way in which the next fastBits bits may begin:
//
//	value<<16 | advance<<8 | length         a code and the bits of its value: length of both together, advance to the coefficient behind it
//	size<<16 | advance<<8 | 0x80 | length   a code whose value, of size bits, does not fit
//	0x80                                    a code that does not fit
//
// The end of a block advances by endOfBlock. skip has, for blocks that are not wanted, the length of as many whole codes with their values as fit, and how
// far they advance: advance<<8 | length; 0 if not even one fits.
type huffman struct {
	fast  [1 << fastBits]int32
	skip  [1 << fastBits]uint16
	limit [18]int32 // of codes of n bits, moved left to 16 bits: all of them are below it
	shift [17]int32 // code of n bits + shift = its place in syms
	syms  [256]uint8
}

const (
	endOfBlock = 128
	long       = 0x80
)

// huffmanTables reads the tables of a DHT marker. Those that are as in the file before are kept.
func (d *Decoder) huffmanTables(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 17 {
			return false
		}
		class, id, n := b[0]>>4, b[0]&15, 0
		for _, c := range b[1:17] {
			n += int(c)
		}
		if class > 1 || id > 3 || n > 256 || len(b) < 17+n {
			return false
		}
		k := int(class)*4 + int(id)
		if !bytes.Equal(d.made[k], b[1:17+n]) {
			d.made[k] = d.made[k][:0]
			if !d.tables[k].make([16]byte(b[1:17]), b[17:17+n], class == 1) {
				return false
			}
			d.made[k] = append(d.made[k], b[1:17+n]...)
		}
		if class == 0 {
			d.f.haveDC[id] = true
		} else {
			d.f.haveAC[id] = true
		}
		b = b[17+n:]
	}
	return true
}

// make fills the table from the numbers of codes of each length, and their symbols.
func (t *huffman) make(counts [16]byte, syms []byte, ac bool) bool {
	for i := range t.fast {
		t.fast[i] = long
	}
	copy(t.syms[:], syms)
	code, place := int32(0), int32(0)
	for n := 1; n <= 16; n++ {
		t.shift[n] = place - code
		for range counts[n-1] {
			if code >= 1<<n {
				return false // more codes than there is room for
			}
			sym := int(syms[place])
			if !ac && sym > 11 { // a difference needs no more bits
				return false
			}
			if n <= fastBits {
				t.enter(int(code), n, sym, ac)
			}
			code, place = code+1, place+1
		}
		t.limit[n] = code << (16 - n)
		code <<= 1
	}
	t.limit[17] = 1 << 16
	if ac {
		t.chain()
	}
	return true
}

// enter fills the entries of a code of n bits.
func (t *huffman) enter(code, n, sym int, ac bool) {
	size, advance := sym&15, 0
	if ac {
		advance = symAdvance(sym)
	}
	rest := fastBits - n
	base := code << rest
	for i := range 1 << rest {
		e := size<<16 | advance<<8 | long | n
		if size <= rest {
			e = extend(i>>(rest-size), size)<<16 | advance<<8 | (n + size)
		}
		t.fast[base+i] = int32(e)
	}
}

// symAdvance is how far a symbol of an AC table advances: over the zeros that it counts and the value behind them.
func symAdvance(sym int) int {
	if run, size := sym>>4, sym&15; size > 0 || run == 15 {
		return run + 1
	}
	return endOfBlock
}

// extend gives the number that size bits stand for.
func extend(bits, size int) int {
	if size > 0 && bits < 1<<(size-1) {
		return bits - 1<<size + 1
	}
	return bits
}

// chain fills skip.
func (t *huffman) chain() {
	for i := range t.skip {
		length, advance := 0, 0
		for advance < endOfBlock {
			e := t.fast[(i<<length)&(1<<fastBits-1)]
			n := int(e & 0x1f)
			if e&long != 0 || length+n > fastBits {
				break
			}
			by := int(e >> 8 & 0xff)
			if by < endOfBlock && advance+by >= 64 {
				break // behind the block: damaged, which the path for single codes finds
			}
			length, advance = length+n, advance+by
		}
		t.skip[i] = uint16(advance<<8 | length)
	}
}
