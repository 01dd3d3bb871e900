//go:build cgo && (linux || darwin) && (amd64 || arm64)

package images

// #cgo CFLAGS: -O3 -g0 -std=gnu11 -Wall
// #cgo noescape rs_draw
// #cgo nocallback rs_draw
// #cgo noescape rs_draw_bytes
// #cgo nocallback rs_draw_bytes
// #cgo noescape rs_planes
// #cgo nocallback rs_planes
// #include "resample.h"
import "C"

import (
	"os"
	"sync"
	"unsafe"

	"github.com/gotrain/gotrain/train/data/images/augment"
)

// drawJob is what the C kernel needs to know. C has the same struct, rs_job.
type drawJob struct {
	channels, stride           int32
	x, y, w, h                 int32
	htaps, vtaps, flip, planes int32
	linear                     [3]int32
	scale, bias                [3]float64
}

// The structs of both languages have the same size, or this does not compile.
var (
	_ [unsafe.Sizeof(drawJob{}) - C.sizeof_rs_job]struct{}
	_ [C.sizeof_rs_job - unsafe.Sizeof(drawJob{})]struct{}
)

// vectors says whether the C kernel can run. The variable that limits the instruction sets of all kernels limits this one too.
var vectors = sync.OnceValue(func() bool { return os.Getenv("GOTRAIN_MAX_ISA") != "base" && C.rs_vectors() != 0 })

// job describes what plan prepared to the C kernels.
func (c *canvas) job(src *Picture, v View, outW, outH int) drawJob {
	j := drawJob{channels: int32(src.C), stride: int32(src.W * src.C), x: int32(src.X), y: int32(src.Y), w: int32(outW), h: int32(outH),
		htaps: int32(c.hor.taps), vtaps: int32(c.ver.taps)}
	if v.Flip {
		j.flip = 1
	}
	first, last := c.ver.from[0], c.ver.from[outH-1]+c.ver.taps
	// What C reads lies in the picture.
	if first < src.Y || last > src.Y+src.H || c.hor.from[0] < src.X || c.hor.from[outW-1]+c.hor.taps > src.X+src.W {
		panic("images: the region that was planned is not in the picture")
	}
	c.packed = sized(c.packed, int(C.rs_packed(C.int32_t(outW), C.int32_t(j.htaps), C.int32_t(src.C)))+1)
	c.rows = sized(c.rows, int(C.rs_row(C.int32_t(outW), C.int32_t(src.C)))*(last-first+1))
	return j
}

// tables gives the levels to a job.
func (j *drawJob) tables(lut []*levels) (t [3]*C.float) {
	j.planes = int32(len(lut))
	for i := range t {
		l := lut[min(i, len(lut)-1)]
		t[i] = (*C.float)(&l.at[0])
		if j.scale[i], j.bias[i] = l.scale, l.bias; l.linear {
			j.linear[i] = 1
		}
	}
	return t
}

// drawFast draws what plan prepared with vector instructions, and the same result. It reports whether it could.
func (c *canvas) drawFast(src *Picture, v View, outW, outH int, lut []*levels, dst []float32) bool {
	if !vectors() || cap(src.Pix) < len(src.Pix)+slack || len(lut) > 3 || len(dst) < len(lut)*outW*outH || outW*outH == 0 {
		return false
	}
	j := c.job(src, v, outW, outH)
	t := j.tables(lut)
	C.rs_draw((*C.rs_job)(unsafe.Pointer(&j)), (*C.uint8_t)(&src.Pix[0]), (*C.int64_t)(unsafe.Pointer(&c.hor.from[0])), (*C.int32_t)(&c.hor.k[0]),
		(*C.int64_t)(unsafe.Pointer(&c.ver.from[0])), (*C.int32_t)(&c.ver.k[0]), (*C.int16_t)(&c.packed[0]), (*C.uint8_t)(&c.rows[0]),
		t[0], t[1], t[2], (*C.float)(&dst[0]))
	return true
}

// drawFastBytes is drawFast into c.drawn.
func (c *canvas) drawFastBytes(src *Picture, v View, outW, outH int) bool {
	if !vectors() || cap(src.Pix) < len(src.Pix)+slack || outW*outH == 0 || cap(c.drawn.Pix) < outW*outH*src.C+slack {
		return false
	}
	j := c.job(src, v, outW, outH)
	C.rs_draw_bytes((*C.rs_job)(unsafe.Pointer(&j)), (*C.uint8_t)(&src.Pix[0]), (*C.int64_t)(unsafe.Pointer(&c.hor.from[0])), (*C.int32_t)(&c.hor.k[0]),
		(*C.int64_t)(unsafe.Pointer(&c.ver.from[0])), (*C.int32_t)(&c.ver.k[0]), (*C.int16_t)(&c.packed[0]), (*C.uint8_t)(&c.rows[0]),
		(*C.uint8_t)(&c.drawn.Pix[0]))
	return true
}

// emitFast is emitAll with vector instructions.
func emitFast(p *augment.Pixels, lut []*levels, dst []float32) bool {
	if !vectors() || cap(p.Pix) < len(p.Pix)+slack || len(lut) > 3 || len(dst) < len(lut)*p.W*p.H || p.W*p.H == 0 {
		return false
	}
	j := drawJob{channels: int32(p.C), w: int32(p.W), h: int32(p.H)}
	t := j.tables(lut)
	C.rs_planes((*C.rs_job)(unsafe.Pointer(&j)), (*C.uint8_t)(&p.Pix[0]), t[0], t[1], t[2], (*C.float)(&dst[0]))
	return true
}
