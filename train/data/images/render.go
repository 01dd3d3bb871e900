package images

import (
	"fmt"
	"image"
	"math"

	"github.com/gotrain/gotrain/train/data/images/augment"
)

// View describes which part of a picture becomes the output: the region (X, Y, W, H), in pixels of the full picture and possibly fractional,
// is resized to OutW × OutH, of which the window from (WinX, WinY) on is kept, mirrored if Flip.
//
// When the region's size equals OutW × OutH it is copied and may reach beyond the picture; there it is black.
type View struct {
	X, Y, W, H float64
	OutW, OutH int
	WinX, WinY int
	Flip       bool
	// Whole lets the filter read beyond the region, to the borders of the picture; a crop that is resized afterwards may not.
	Whole bool
}

// copies reports whether the view moves pixels without mixing them.
func (v View) copies() bool {
	return v.W == float64(v.OutW) && v.H == float64(v.OutH) && v.X == float64(int(v.X)) && v.Y == float64(int(v.Y))
}

// reduce is the greatest power of two, up to limit, by which the picture may be shrunk beforehand so that the region still has at least twice
// the pixels that the output needs in each direction; then the result hardly differs (Pillow's reducing_gap is the same 2).
func (v View) reduce(limit int) int {
	d := 1
	for 2*d <= limit && v.W >= float64(4*d*v.OutW) && v.H >= float64(4*d*v.OutH) {
		d *= 2
	}
	return d
}

// Norm turns a byte v of channel c into (v/255 - Mean[c]) / Std[c].
type Norm struct{ Mean, Std [3]float64 }

// ImageNet is the normalisation of torchvision's pretrained models.
var ImageNet = Norm{Mean: [3]float64{0.485, 0.456, 0.406}, Std: [3]float64{0.229, 0.224, 0.225}}

// Check rejects a division by zero. The zero Norm means no normalisation and is valid.
func (n Norm) Check() error {
	for c, s := range n.Std {
		if !(s > 0) && n != (Norm{}) {
			return fmt.Errorf("images: standard deviation %v of channel %d must be positive", s, c)
		}
	}
	return nil
}

// levels maps the bytes of a channel to floats: v becomes at[v].
type levels struct {
	at [256]float32
	// If linear, at[v] is v*scale + bias, computed in float64 with one rounding, and then rounded.
	linear      bool
	scale, bias float64
}

// newLevels are those of a channel with this mean and standard deviation.
func newLevels(mean, std float64) *levels {
	t := &levels{linear: true, scale: 1 / (255 * std), bias: -mean / std}
	for v := range t.at {
		t.at[v] = float32((float64(v)/255 - mean) / std)
		t.linear = t.linear && float32(math.FMA(float64(v), t.scale, t.bias)) == t.at[v]
	}
	return t
}

// planes gives the levels of n output planes.
func planes(norm Norm, n int) []*levels {
	if norm == (Norm{}) {
		norm.Std = [3]float64{1, 1, 1}
	}
	p := make([]*levels, n)
	for c := range p {
		p[c] = newLevels(norm.Mean[c], norm.Std[c])
	}
	return p
}

// canvas is the scratch memory of rendering, and the plan of one picture.
type canvas struct {
	hor, ver weights
	rows     []byte // after the horizontal pass
	grey     Picture
	line     []byte
	packed   []int16 // weights as vector instructions want them
	drawn    augment.Pixels
}

// render draws a view of src, which is the full picture shrunk by denom, into dst: len(lut) planes of outW × outH floats. A grey picture
// fills every plane.
func (c *canvas) render(src *Picture, denom int, v View, outW, outH int, lut []*levels, dst []float32) {
	c.plan(src.W, src.H, denom, v, outW, outH)
	c.draw(src, denom, v, outW, outH, lut, dst)
}

// plan prepares to draw a view of a picture of w × h pixels, which is the full one shrunk by denom, and returns the region of it that draw will read.
func (c *canvas) plan(w, h, denom int, v View, outW, outH int) image.Rectangle {
	if denom == 1 && v.copies() {
		return image.Rect(0, 0, outW, outH).Add(image.Pt(int(v.X)+v.WinX, int(v.Y)+v.WinY)).Intersect(image.Rect(0, 0, w, h))
	}
	s := float64(denom)
	x0, y0 := v.X/s, v.Y/s
	x1, y1 := min((v.X+v.W)/s, float64(w)), min((v.Y+v.H)/s, float64(h))
	minX, maxX, minY, maxY := 0, w, 0, h
	if !v.Whole {
		minX, maxX = min(int(x0), w-1), min(ceil(x1), w)
		minY, maxY = min(int(y0), h-1), min(ceil(y1), h)
	}
	c.hor.set(x0, x1, v.OutW, v.WinX, outW, minX, maxX)
	c.ver.set(y0, y1, v.OutH, v.WinY, outH, minY, maxY)
	return image.Rect(c.hor.from[0], c.ver.from[0], c.hor.from[outW-1]+c.hor.taps, c.ver.from[outH-1]+c.ver.taps)
}

// draw draws the view that was planned. src has the region that plan returned, or more.
func (c *canvas) draw(src *Picture, denom int, v View, outW, outH int, lut []*levels, dst []float32) {
	if denom == 1 && v.copies() {
		c.copied(src, v, outW, outH, func(y int, line []byte) { emit(line, src.C, y, outW, outH, v.Flip, lut, dst) })
		return
	}
	if c.drawFast(src, v, outW, outH, lut, dst) {
		return
	}
	c.resized(src, outW, outH, func(y int, line []byte) { emit(line, src.C, y, outW, outH, v.Flip, lut, dst) })
}

// drawBytes draws the view that was planned into c.drawn.
func (c *canvas) drawBytes(src *Picture, denom int, v View, outW, outH int) {
	c.drawn.Reset(outW, outH, src.C)
	put := func(y int, line []byte) {
		row := c.drawn.Row(y)
		if copy(row, line); v.Flip {
			mirror(row, src.C)
		}
	}
	switch {
	case denom == 1 && v.copies():
		c.copied(src, v, outW, outH, put)
	case !c.drawFastBytes(src, v, outW, outH):
		c.resized(src, outW, outH, put)
	}
}

// mirror turns a row of pixels around.
func mirror(row []byte, channels int) {
	for a, b := 0, len(row)-channels; a < b; a, b = a+channels, b-channels {
		for k := range channels {
			row[a+k], row[b+k] = row[b+k], row[a+k]
		}
	}
}

// resized makes the rows of the view that was planned, not mirrored.
func (c *canvas) resized(src *Picture, outW, outH int, row func(y int, line []byte)) {
	first := c.ver.from[0]
	last := c.ver.from[outH-1] + c.ver.taps
	stride := outW * src.C
	c.rows = sized(c.rows, (last-first)*stride)
	for y := first; y < last; y++ {
		row := src.Pix[(y-src.Y)*src.W*src.C:][:src.W*src.C]
		if out := c.rows[(y-first)*stride:][:stride]; src.C == 3 {
			c.hor.rowRGB(out, row, src.X)
		} else {
			c.hor.rowGray(out, row, src.X)
		}
	}
	c.line = sized(c.line, stride)
	for y := range outH {
		column(c.line, c.rows[(c.ver.from[y]-first)*stride:], stride, c.ver.k[y*c.ver.taps:][:c.ver.taps])
		row(y, c.line)
	}
}

func ceil(x float64) int {
	n := int(x)
	if float64(n) < x {
		n++
	}
	return n
}

// copied makes the rows of a view that needs no resize, not mirrored; outside the picture they are black.
func (c *canvas) copied(src *Picture, v View, outW, outH int, row func(y int, line []byte)) {
	c.line = sized(c.line, outW*src.C)
	left, top := int(v.X)+v.WinX-src.X, int(v.Y)+v.WinY-src.Y
	a, b := clamp(left, 0, src.W), clamp(left+outW, 0, src.W)
	for y := range outH {
		clear(c.line)
		if sy := top + y; a < b && sy >= 0 && sy < src.H { // a window of a small picture may lie beside it
			copy(c.line[(a-left)*src.C:], src.Pix[(sy*src.W+a)*src.C:(sy*src.W+b)*src.C])
		}
		row(y, c.line)
	}
}

// emitAll writes interleaved pixels as planes of floats.
func emitAll(p *augment.Pixels, lut []*levels, dst []float32) {
	if emitFast(p, lut, dst) {
		return
	}
	for y := range p.H {
		emit(p.Row(y), p.C, y, p.W, p.H, false, lut, dst)
	}
}

// emit writes one interleaved row as floats into the planes of dst.
func emit(line []byte, channels, y, w, h int, flip bool, lut []*levels, dst []float32) {
	for p, l := range lut {
		t := &l.at
		out := dst[(p*h+y)*w:][:w]
		px := line
		if channels == 3 {
			px = line[p:]
		}
		switch {
		case flip:
			for i := range out {
				out[w-1-i] = t[px[i*channels]]
			}
		case channels == 3:
			for i := range out {
				out[i] = t[px[3*i]]
			}
		default:
			for i := range out {
				out[i] = t[px[i]]
			}
		}
	}
}
