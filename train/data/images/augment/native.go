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
// #include "kernels.h"
import "C"

// Whether there are C kernels. They need no special instructions.
const native = true

func warpFast(p, old *Pixels, m *matrix, fill *[3]byte) {
	C.aug_warp((*C.uint8_t)(&p.Pix[0]), (*C.uint8_t)(&old.Pix[0]), C.int(p.W), C.int(p.H), C.int(p.C), (*C.double)(&m[0]), (*C.uint8_t)(&fill[0]))
}

func colourFast(p *Pixels, factor float64) {
	C.aug_colour((*C.uint8_t)(&p.Pix[0]), C.int64_t(p.W*p.H), C.float(factor))
}

func sharpnessFast(p, old *Pixels, factor float64) {
	C.aug_sharpness((*C.uint8_t)(&p.Pix[0]), (*C.uint8_t)(&old.Pix[0]), C.int(p.W), C.int(p.H), C.int(p.C), C.float(factor))
}

func hueFast(p *Pixels, shift byte) {
	C.aug_hue((*C.uint8_t)(&p.Pix[0]), C.int64_t(p.W*p.H), C.int(shift))
}
