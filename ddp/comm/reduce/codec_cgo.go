//go:build cgo && amd64

package reduce

/*
#include "reduce.h"
#cgo noescape gt_quantise
#cgo nocallback gt_quantise
#cgo noescape gt_dequantise
#cgo nocallback gt_dequantise
#cgo noescape gt_sum_quantised
#cgo nocallback gt_sum_quantised
#cgo noescape gt_narrow
#cgo nocallback gt_narrow
#cgo noescape gt_widen
#cgo nocallback gt_widen
*/
import "C"

import "unsafe"

// limit makes the kernels use at most an instruction set: 0 sse2, 1 avx2, 2 avx512. It returns the one in use.
func limit(isa int) int { return int(C.gt_reduce_limit(C.int(isa))) }

func floats(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }
func bytes8(s []int8) *C.int8_t   { return (*C.int8_t)(unsafe.Pointer(unsafe.SliceData(s))) }
func shorts(s []int16) *C.int16_t { return (*C.int16_t)(unsafe.Pointer(unsafe.SliceData(s))) }
func halves(s []uint16) *C.uint16_t {
	return (*C.uint16_t)(unsafe.Pointer(unsafe.SliceData(s)))
}

func quantise(block int, q []int8, scale, x []float32, f *Feedback) bool {
	n, b := C.size_t(len(x)), C.size_t(block)
	if f == nil {
		return C.gt_quantise(n, b, bytes8(q), floats(scale), floats(x), nil, nil, nil, nil, 1) != 0
	}
	return C.gt_quantise(n, b, bytes8(q), floats(scale), floats(x), shorts(f.Old), floats(f.OldScale), shorts(f.New), floats(f.NewScale),
		C.float(f.Unit)) != 0
}

func dequantise(block int, dst []float32, q []int8, scale []float32) bool {
	return C.gt_dequantise(C.size_t(len(dst)), C.size_t(block), floats(dst), bytes8(q), floats(scale)) != 0
}

func sumQuantised(block int, dst []float32, q, scale unsafe.Pointer, stride, ranks, own int) {
	C.gt_sum_quantised(C.size_t(len(dst)), C.size_t(block), floats(dst), (*C.int8_t)(q), (*C.float)(scale), C.size_t(stride), C.int(ranks), C.int(own))
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func narrow(bf bool, dst []uint16, src []float32, by float32) {
	C.gt_narrow(flag(bf), C.size_t(len(dst)), halves(dst), floats(src), C.float(by))
}

func widen(bf bool, dst []float32, src []uint16, by float32) bool {
	return C.gt_widen(flag(bf), C.size_t(len(dst)), floats(dst), halves(src), C.float(by)) != 0
}
