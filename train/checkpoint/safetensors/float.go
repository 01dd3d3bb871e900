package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Float32s reads a floating-point tensor as float32; F64 is rounded to nearest even.
func (f *File) Float32s(name string) ([]float32, error) {
	t, err := f.find(name)
	if err != nil {
		return nil, err
	}
	raw, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	out := make([]float32, int64(len(raw))/t.DType.Size())
	if err := DecodeFloat32s(out, raw, t.DType); err != nil {
		return nil, fmt.Errorf("safetensors: %s: tensor %q: %w", f.name, name, err)
	}
	return out, nil
}

// DecodeFloat32s converts little-endian floating-point values to float32 in dst; F64 is rounded to nearest even. raw has len(dst) values.
func DecodeFloat32s(dst []float32, raw []byte, t DType) error {
	if n := t.Size() * int64(len(dst)); n != int64(len(raw)) {
		return fmt.Errorf("%d bytes of %s for %d values", len(raw), t, len(dst))
	}
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	case F16:
		for i := range dst {
			dst[i] = half(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	default:
		return fmt.Errorf("%s is not a floating-point type", t)
	}
	return nil
}

// AppendFloat32s appends the little-endian bytes of values as F32, BF16 or F16, rounded to nearest even. A finite value that is too large for the
// type is an error, because an infinity in a weight file would be noticed too late.
func AppendFloat32s(dst []byte, values []float32, t DType) ([]byte, error) {
	switch t {
	case F32:
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	case BF16, F16:
		round := toBF16
		if t == F16 {
			round = toF16
		}
		for _, v := range values {
			h, overflow := round(v)
			if overflow {
				return dst, fmt.Errorf("%g is too large for %s", v, t)
			}
			dst = binary.LittleEndian.AppendUint16(dst, h)
		}
	default:
		return dst, fmt.Errorf("float32 values cannot be written as %s", t)
	}
	return dst, nil
}

// toBF16 keeps the upper half, rounded; a NaN stays a NaN.
func toBF16(v float32) (h uint16, overflow bool) {
	b := math.Float32bits(v)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40, false
	}
	h = uint16((b + 0x7fff + b>>16&1) >> 16)
	return h, h&0x7fff == 0x7f80 && b&0x7fffffff != 0x7f800000
}

// toF16 rounds to an IEEE 754 binary16.
func toF16(v float32) (h uint16, overflow bool) {
	b := math.Float32bits(v)
	sign, b := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff), false
	case b == 0x7f800000:
		return sign | 0x7c00, false
	case b >= 0x477ff000: // 65520, half-way from the largest value to the next
		return sign | 0x7c00, true
	case b < 0x38800000: // below 2^-14: a multiple of 2^-24, and float64 has room to round once
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24))), false
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-112<<23)>>13), false
}

// half widens an IEEE 754 binary16; every value has an exact float32.
func half(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0: // zero and subnormals: frac · 2^-24
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
