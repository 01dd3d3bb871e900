package reduce

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// Narrow multiplies float32 and rounds to 16 bits (F16 or BF16): dst = src × by, to nearest even. What is too large for F16 becomes an infinity.
func Narrow(t npu.DType, dst []uint16, src []float32, by float32) {
	if len(dst) != len(src) || t != npu.F16 && t != npu.BF16 {
		panic(fmt.Sprintf("reduce: %d values to %d of %v", len(src), len(dst), t))
	}
	if len(dst) > 0 {
		narrow(t == npu.BF16, dst, src, by)
	}
}

// Widen is exact but for the product: dst = src × by. It returns false if a number of src is not finite.
func Widen(t npu.DType, dst []float32, src []uint16, by float32) (finite bool) {
	if len(dst) != len(src) || t != npu.F16 && t != npu.BF16 {
		panic(fmt.Sprintf("reduce: %d values of %v to %d", len(src), t, len(dst)))
	}
	return len(dst) == 0 || widen(t == npu.BF16, dst, src, by)
}

func plainNarrow(bf bool, dst []uint16, src []float32, by float32) {
	for i, v := range src {
		if v *= by; bf {
			dst[i] = toBF16(v)
		} else {
			dst[i] = toF16(v)
		}
	}
}

func plainWiden(bf bool, dst []float32, src []uint16, by float32) bool {
	var most uint32
	for i, h := range src {
		v := fromF16(h)
		if bf {
			v = fromBF16(h)
		}
		most = max(most, math.Float32bits(v)&0x7fffffff)
		dst[i] = v * by
	}
	return most < 0x7f800000
}
