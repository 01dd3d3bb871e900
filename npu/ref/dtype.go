package ref

import (
	"encoding/binary"
	"math"

	"github.com/gotrain/gotrain/npu"
)

var le = binary.LittleEndian

// load reads len(dst) elements of src, starting at element off.
func load(dst []float64, src []byte, off int, t npu.DType) {
	src = src[off*t.Size() : (off+len(dst))*t.Size()]
	switch t {
	case npu.F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(le.Uint32(src[4*i:])))
		}
	case npu.BF16:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16))
		}
	case npu.F16:
		for i := range dst {
			dst[i] = FromF16(le.Uint16(src[2*i:]))
		}
	case npu.F64:
		for i := range dst {
			dst[i] = math.Float64frombits(le.Uint64(src[8*i:]))
		}
	default:
		for i := range dst {
			dst[i] = float64(loadInt(src, i, t))
		}
	}
}

// store writes src as elements of dst from element off on, rounding to nearest even.
func store(dst []byte, off int, src []float64, t npu.DType) {
	dst = dst[off*t.Size() : (off+len(src))*t.Size()]
	switch t {
	case npu.F32:
		for i, v := range src {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(v)))
		}
	case npu.BF16:
		for i, v := range src {
			le.PutUint16(dst[2*i:], BF16(float32(v)))
		}
	case npu.F16:
		for i, v := range src {
			le.PutUint16(dst[2*i:], F16(v))
		}
	case npu.F64:
		for i, v := range src {
			le.PutUint64(dst[8*i:], math.Float64bits(v))
		}
	default:
		for i, v := range src {
			storeInt(dst, i, toInt(v, t), t)
		}
	}
}

// BF16 rounds to the nearest bfloat16, ties to even; a NaN stays a NaN (quiet, with its sign). Values are rounded to float32
// first, as in every kernel that computes in float32.
func BF16(v float32) uint16 {
	u := math.Float32bits(v)
	if v != v {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// FromF16 is the value of an IEEE binary16; a NaN loses its payload.
func FromF16(h uint16) float64 {
	sign, exp, man := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(man, -24)
	case 31:
		if man != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+man, exp-25)
}

// F16 rounds to the nearest IEEE binary16, ties to even, with subnormal numbers; from 65520 on it is infinite, and a NaN stays one (quiet, with its sign).
func F16(v float64) uint16 {
	var sign uint16
	if math.Signbit(v) {
		sign = 0x8000
	}
	a := math.Abs(v)
	switch {
	case v != v:
		return sign | 0x7e00
	case a >= 65520: // halfway between the largest finite value and 65536
		return sign | 0x7c00
	case a < 0x1p-14: // subnormal; a carry into the exponent gives the right bits too
		return sign | uint16(math.RoundToEven(math.Ldexp(a, 24)))
	}
	_, e := math.Frexp(a) // a = f * 2^e, f in [0.5, 1)
	m := uint16(math.RoundToEven(math.Ldexp(a, 11-e)))
	return sign | (uint16(e+13)<<10 + m)
}

// loadInt reads an integer element; storeInt writes one, wrapping as Go's conversions do.
func loadInt(src []byte, i int, t npu.DType) int64 {
	switch t {
	case npu.I32:
		return int64(int32(le.Uint32(src[4*i:])))
	case npu.I64:
		return int64(le.Uint64(src[8*i:]))
	case npu.I8:
		return int64(int8(src[i]))
	}
	return int64(src[i])
}

func storeInt(dst []byte, i int, v int64, t npu.DType) {
	switch t {
	case npu.I32:
		le.PutUint32(dst[4*i:], uint32(v))
	case npu.I64:
		le.PutUint64(dst[8*i:], uint64(v))
	default:
		dst[i] = byte(v)
	}
}

// toInt rounds to nearest even and saturates; NaN becomes 0.
func toInt(v float64, t npu.DType) int64 {
	lo, hi := intRange(t)
	v = math.RoundToEven(v)
	switch {
	case v != v:
		return 0
	case v <= float64(lo):
		return lo
	case v >= float64(hi):
		return hi
	}
	return int64(v)
}

func intRange(t npu.DType) (lo, hi int64) {
	switch t {
	case npu.I32:
		return math.MinInt32, math.MaxInt32
	case npu.I8:
		return math.MinInt8, math.MaxInt8
	case npu.U8:
		return 0, math.MaxUint8
	}
	return math.MinInt64, math.MaxInt64
}
