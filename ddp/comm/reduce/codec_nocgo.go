//go:build !cgo || !amd64

package reduce

import "unsafe"

// limit does nothing: there is one implementation.
func limit(int) int { return 0 }

func quantise(block int, q []int8, scale, x []float32, f *Feedback) bool {
	return plainQuantise(block, q, scale, x, f)
}

func dequantise(block int, dst []float32, q []int8, scale []float32) bool {
	return plainDequantise(block, dst, q, scale)
}

func sumQuantised(block int, dst []float32, q, scale unsafe.Pointer, stride, ranks, own int) {
	plainSumQuantised(block, dst, q, scale, stride, ranks, own)
}

func narrow(bf bool, dst []uint16, src []float32, by float32) { plainNarrow(bf, dst, src, by) }

func widen(bf bool, dst []float32, src []uint16, by float32) bool {
	return plainWiden(bf, dst, src, by)
}
