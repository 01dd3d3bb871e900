package reduce

import "math"

func fromBF16(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }

// toBF16 rounds to nearest even; NaN stays NaN.
func toBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// fromF16 is exact.
func fromF16(v uint16) float32 {
	sign := uint32(v&0x8000) << 16
	exp, frac := uint32(v>>10&31), uint32(v&1023)
	switch {
	case exp == 31 && frac != 0: // NaN, made quiet as processors do
		return math.Float32frombits(sign | 0x7fc00000 | frac<<13)
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000)
	case exp == 0: // zero or subnormal: frac × 2^-24
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// toF16 rounds to nearest even, to infinity from 65520 on; NaN stays NaN.
func toF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x477ff000: // 65520
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: a subnormal. Adding ½ lets the adder round at 2^-24.
		r := math.Float32frombits(b) + 0.5
		return sign | uint16(math.Float32bits(r)-0x3f000000)
	}
	return sign | uint16((b-112<<23+0xfff+b>>13&1)>>13)
}
