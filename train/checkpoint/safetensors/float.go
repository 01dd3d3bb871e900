package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Float32s reads a tensor of a floating-point type as float32; F64 is rounded to nearest even.
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
	switch t.DType {
	case F32:
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case F64:
		for i := range out {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	case BF16:
		for i := range out {
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	case F16:
		for i := range out {
			out[i] = half(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	default:
		return nil, fmt.Errorf("safetensors: %s: tensor %q is %s, not a floating-point type", f.name, name, t.DType)
	}
	return out, nil
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
