//go:build cgo && (linux || darwin) && (amd64 || arm64)

package augment

// #cgo CFLAGS: -O3 -g0 -std=c11 -Wall
// #cgo noescape aug_warp
// #cgo nocallback aug_warp
// #cgo noescape aug_colour
// #cgo nocallback aug_colour
// #cgo noescape aug_sharpness
// #cgo nocallback aug_sharpness
// #cgo noescape aug_hue
// #cgo nocallback aug_hue
// #cgo noescape aug_grey
// #cgo nocallback aug_grey
// #cgo noescape aug_map
// #cgo nocallback aug_map
// #cgo noescape aug_map3
// #cgo nocallback aug_map3
// #include "kernels.h"
import "C"

import (
	"os"
	"sync"
)

// Whether there are C kernels. They need no special instructions, but use AVX2 and AVX-512 where the processor has them.
const native = true

// level is that of kernels.h. The variable that limits the instruction sets of all kernels limits this one too.
var level = sync.OnceValue(func() int {
	limit := 2
	switch os.Getenv(envISA) {
	case "base":
		limit = 0
	case "avx2":
		limit = 1
	}
	return min(limit, int(C.aug_level()))
})

func warpFast(p, old *Pixels, m *matrix, fill *[3]byte) {
	C.aug_warp((*C.uint8_t)(&p.Pix[0]), (*C.uint8_t)(&old.Pix[0]), C.int(p.W), C.int(p.H), C.int(p.C), (*C.double)(&m[0]), (*C.uint8_t)(&fill[0]), C.int(level()))
}

func colourFast(p *Pixels, factor float64) {
	C.aug_colour((*C.uint8_t)(&p.Pix[0]), C.int64_t(p.W*p.H), C.float(factor), C.int(level()))
}

func sharpnessFast(p, old *Pixels, factor float64) {
	C.aug_sharpness((*C.uint8_t)(&p.Pix[0]), (*C.uint8_t)(&old.Pix[0]), C.int(p.W), C.int(p.H), C.int(p.C), C.float(factor), C.int(level()))
}

func hueFast(p *Pixels, shift byte) {
	C.aug_hue((*C.uint8_t)(&p.Pix[0]), C.int64_t(p.W*p.H), C.int(shift), C.int(level()))
}

// greySumFast is the sum of the luminances of a colour picture.
func greySumFast(p *Pixels) int {
	return int(C.aug_grey((*C.uint8_t)(&p.Pix[0]), C.int64_t(p.W*p.H), C.int(level())))
}

// mapFast applies a table to all bytes, unless the processor lacks the instructions.
func mapFast(pix []byte, t *[256]byte) bool {
	if len(pix) == 0 || level() < 2 {
		return false
	}
	C.aug_map((*C.uint8_t)(&pix[0]), C.int64_t(len(pix)), (*C.uint8_t)(&t[0]))
	return true
}

// mapChannelsFast applies a table to each channel of a colour picture, unless the processor lacks the instructions.
func mapChannelsFast(p *Pixels, t *[3][256]byte) bool {
	if p.C != 3 || len(p.Pix) == 0 || level() < 2 {
		return false
	}
	C.aug_map3((*C.uint8_t)(&p.Pix[0]), C.int64_t(p.W*p.H), (*C.uint8_t)(&t[0][0]))
	return true
}
