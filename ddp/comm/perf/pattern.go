package perf

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// period of the numbers in memory. It is prime, so that data which end up at a wrong place, which is off by a power of two or by a part, differ.
const period = 4099

// Shifts of the numbers of the next rank, and of the next repetition.
const (
	perRank  = 31
	perRound = 7
)

// pattern is what memory of a collective holds before and after it. Element i of rank r in repetition k is number i + 31 r + 7 k of a fixed sequence.
type pattern struct {
	call comm.Call // with Elems
	size int64     // bytes of an element
	w    int
	raw  []byte // the sequence, twice in a row
	sum  []byte // the sequence reduced over all ranks, twice
}

func newPattern(call comm.Call, w int) *pattern {
	p := &pattern{call: call, size: int64(call.DType.Size()), w: w}
	top, every := span(call.DType, w)
	if call.Op != comm.Sum {
		top, every = limit(call.DType), 1
		top = min(top, 120) // also for signed bytes
	}
	seq := make([]int64, period)
	for i := range seq {
		seq[i] = int64(hash(uint64(i)) % uint64(top+1))
	}
	value := func(i, r int) int64 {
		if r%every != 0 {
			return 0
		}
		return seq[(i+perRank*r)%period]
	}
	for range 2 {
		for i := range period {
			p.raw = encode(p.raw, call.DType, seq[i])
			all := value(i, 0)
			for r := 1; r < w; r++ {
				switch v := value(i, r); call.Op {
				case comm.Max:
					all = max(all, v)
				case comm.Min:
					all = min(all, v)
				default:
					all += v
				}
			}
			p.sum = encode(p.sum, call.DType, all)
		}
	}
	return p
}

// limit is the largest whole number up to which a type has all of them.
func limit(t npu.DType) int64 {
	switch t {
	case npu.BF16:
		return 1 << 8
	case npu.F16:
		return 1 << 11
	case npu.F32:
		return 1 << 24
	case npu.I8:
		return math.MaxInt8
	case npu.U8:
		return math.MaxUint8
	}
	return 1 << 30
}

// span is the largest number that a rank may hold so that sums over w ranks are exact, and of how many ranks one holds numbers at all.
func span(t npu.DType, w int) (top int64, every int) {
	most := limit(t)
	return max(1, min(1000, most/int64(w))), int((int64(w) + most - 1) / most)
}

// hash mixes the bits of a number (splitmix64).
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fill writes what rank r holds before repetition k.
func (p *pattern) fill(mem []byte, r, k int) {
	if _, every := span(p.call.DType, p.w); reduces(p.call.Kind) && p.call.Op == comm.Sum && r%every != 0 {
		clear(mem)
		return
	}
	p.lay(mem, p.raw, perRank*r+perRound*k)
}

// lay writes a sequence from its element at.
func (p *pattern) lay(mem, seq []byte, at int) {
	one := seq[int64(at%period)*p.size:][:period*p.size]
	for len(mem) > 0 {
		mem = mem[copy(mem, one):]
	}
}

// compare counts the elements of mem that differ from a sequence from its element at, by more than tolerance; first is the lowest of them, or -1.
func (p *pattern) compare(mem, seq []byte, at int, tolerance float64) (wrong, first int64) {
	one := seq[int64(at%period)*p.size:][:period*p.size]
	first = -1
	for base := int64(0); len(mem) > 0; base += period {
		n := min(len(mem), len(one))
		if !bytes.Equal(mem[:n], one[:n]) {
			for i := int64(0); i < int64(n)/p.size; i++ {
				got, want := mem[i*p.size:(i+1)*p.size], one[i*p.size:(i+1)*p.size]
				if bytes.Equal(got, want) {
					continue
				}
				if d := math.Abs(decode(p.call.DType, got) - decode(p.call.DType, want)); tolerance > 0 && d <= tolerance { // false for NaN
					continue
				}
				if wrong++; first < 0 {
					first = base + i
				}
			}
		}
		mem = mem[n:]
	}
	return wrong, first
}

// part is a stretch of a result: the sequence that it holds, from which element.
type part struct {
	elems int64
	seq   []byte
	at    int
}

// result is what out of rank r holds after repetition k; nil where the contract leaves it open.
func (p *pattern) result(r, k int) (parts []part) {
	n, w := p.call.Elems, int64(p.w)
	at := perRound * k
	switch p.call.Kind {
	case comm.AllReduce:
		return []part{{n, p.sum, at}}
	case comm.Reduce:
		if r == p.call.Root {
			return []part{{n, p.sum, at}}
		}
	case comm.ReduceScatter:
		return []part{{n / w, p.sum, at + int(n/w*int64(r)%period)}}
	case comm.Broadcast:
		return []part{{n, p.raw, at + perRank*p.call.Root}}
	case comm.AllGather:
		for s := range p.w {
			parts = append(parts, part{n / w, p.raw, at + perRank*s})
		}
	case comm.AllToAll:
		for s := range p.w {
			parts = append(parts, part{n / w, p.raw, at + perRank*s + int(n/w*int64(r)%period)})
		}
	}
	return parts
}

func reduces(k comm.Kind) bool {
	return k == comm.AllReduce || k == comm.ReduceScatter || k == comm.Reduce
}

// encode appends a whole number as an element; integers keep its low bits.
func encode(b []byte, t npu.DType, v int64) []byte {
	le := binary.NativeEndian
	switch t {
	case npu.F32:
		return le.AppendUint32(b, math.Float32bits(float32(v)))
	case npu.F64:
		return le.AppendUint64(b, math.Float64bits(float64(v)))
	case npu.BF16:
		return le.AppendUint16(b, uint16(math.Float32bits(float32(v))>>16))
	case npu.F16:
		if v == 0 {
			return le.AppendUint16(b, 0)
		}
		e := bits.Len64(uint64(v)) - 1
		return le.AppendUint16(b, uint16(e+15)<<10|uint16(v<<10>>e&1023))
	case npu.I32:
		return le.AppendUint32(b, uint32(v))
	case npu.I64:
		return le.AppendUint64(b, uint64(v))
	}
	return append(b, byte(v))
}

// decode reads an element.
func decode(t npu.DType, b []byte) float64 {
	le := binary.NativeEndian
	switch t {
	case npu.F32:
		return float64(math.Float32frombits(le.Uint32(b)))
	case npu.F64:
		return math.Float64frombits(le.Uint64(b))
	case npu.BF16:
		return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16))
	case npu.F16:
		v := le.Uint16(b)
		exp, frac := int(v>>10&31), float64(v&1023)
		f := math.Ldexp(1024+frac, exp-25)
		switch {
		case exp == 0:
			f = math.Ldexp(frac, -24)
		case exp == 31 && frac == 0:
			f = math.Inf(1)
		case exp == 31:
			f = math.NaN()
		}
		return math.Copysign(f, 1-2*float64(v>>15))
	case npu.I32:
		return float64(int32(le.Uint32(b)))
	case npu.I64:
		return float64(int64(le.Uint64(b)))
	case npu.I8:
		return float64(int8(b[0]))
	}
	return float64(b[0])
}
