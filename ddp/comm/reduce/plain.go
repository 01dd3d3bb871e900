package reduce

import (
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

type number interface {
	~float32 | ~float64 | ~int32 | ~int64 | ~uint8 | ~int8
}

// plain is the definition: every other implementation gives the same bits.
func plain(op comm.Op, t npu.DType, n int, dst unsafe.Pointer, mirror, src []unsafe.Pointer) {
	switch t {
	case npu.F32:
		plainOf[float32](op, n, dst, mirror, src)
	case npu.F64:
		plainOf[float64](op, n, dst, mirror, src)
	case npu.I32:
		plainOf[int32](op, n, dst, mirror, src)
	case npu.I64:
		plainOf[int64](op, n, dst, mirror, src)
	case npu.U8:
		plainOf[uint8](op, n, dst, mirror, src)
	case npu.I8:
		plainOf[int8](op, n, dst, mirror, src)
	case npu.BF16:
		plain16(op, n, dst, mirror, src, fromBF16, toBF16)
	case npu.F16:
		plain16(op, n, dst, mirror, src, fromF16, toF16)
	}
}

func at[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

// block is how many elements are combined at a time: the accumulator stays in the first-level cache.
const block = 1024

func plainOf[T number](op comm.Op, n int, dst unsafe.Pointer, mirror, src []unsafe.Pointer) {
	var buf [block]T
	for from := 0; from < n; from += block {
		m := min(block, n-from)
		acc := buf[:m]
		copy(acc, at[T](src[0], n)[from:])
		for _, p := range src[1:] {
			combine(op, acc, at[T](p, n)[from:from+m])
		}
		if dst != nil {
			copy(at[T](dst, n)[from:], acc)
		}
		for _, p := range mirror {
			copy(at[T](p, n)[from:], acc)
		}
	}
}

func plain16(op comm.Op, n int, dst unsafe.Pointer, mirror, src []unsafe.Pointer, from func(uint16) float32, to func(float32) uint16) {
	var buf, one [block]float32
	var out [block]uint16
	for i := 0; i < n; i += block {
		m := min(block, n-i)
		for j, v := range at[uint16](src[0], n)[i : i+m] {
			buf[j] = from(v)
		}
		for _, p := range src[1:] {
			for j, v := range at[uint16](p, n)[i : i+m] {
				one[j] = from(v)
			}
			combine(op, buf[:m], one[:m])
		}
		for j, v := range buf[:m] {
			out[j] = to(v)
		}
		if dst != nil {
			copy(at[uint16](dst, n)[i:], out[:m])
		}
		for _, p := range mirror {
			copy(at[uint16](p, n)[i:], out[:m])
		}
	}
}

// combine does acc = acc op x. The comparisons propagate a NaN from either side.
func combine[T number](op comm.Op, acc, x []T) {
	x = x[:len(acc)]
	switch op {
	case comm.Sum:
		for i := range acc {
			acc[i] += x[i]
		}
	case comm.Max:
		for i, b := range x {
			if a := acc[i]; !(a > b || a != a) {
				acc[i] = b
			}
		}
	case comm.Min:
		for i, b := range x {
			if a := acc[i]; !(a < b || a != a) {
				acc[i] = b
			}
		}
	}
}
