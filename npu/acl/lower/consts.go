package lower

import (
	"encoding/binary"
	"fmt"
	"math"
)

// floats are little-endian f32.
func floats(n int64, at func(i int64) float64) []byte {
	b := make([]byte, 0, 4*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(at(i))))
	}
	return b
}

// ints are little-endian i32.
func ints(n int64, at func(i int64) int64) []byte {
	b := make([]byte, 0, 4*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(at(i))))
	}
	return b
}

// value is one number as a tensor of f32 without dimensions.
func (b *builder) value(v float64) Tensor {
	return b.constant(fmt.Sprintf("f32 %v", v), Float32, func() []byte { return floats(1, func(int64) float64 { return v }) })
}

// count is 0, 1, … n-1 as i32.
func (b *builder) count(n int64) Tensor {
	return b.constant(fmt.Sprintf("i32 0…%d", n-1), Int32, func() []byte { return ints(n, func(i int64) int64 { return i }) }, n)
}

// later is the mask that FlashAttentionScore wants for causal attention: 1 where a key is later than the query, 2048×2048 whatever the lengths are.
func (b *builder) later() Tensor {
	const n = 2048
	return b.constant("causal mask", Bool, func() []byte {
		m := make([]byte, n*n)
		for i := range m {
			if i%n > i/n {
				m[i] = 1
			}
		}
		return m
	}, n, n)
}
