//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "kern.h"
import "C"

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// Winograd is a 3x3 convolution of stride 1 in float32 or bf16 by Winograd's algorithm (arXiv 1509.09308), except for its matrix products: those are commands
// that the caller makes (see Products) and this package runs between its transforms. The memory order of weights and of their gradient is [3 3 In Out].
//
// In bf16 it reads pictures and weights and writes pictures of that type; it computes, and writes the weight gradient, in float32. Products may have factors in
// float32, with tiles of 4x4, so that a result is about as exact as a direct sum in float32, rounded once. Factors in bf16 cost 2 to 3 times that error
// with tiles of 2x2, and 5 to 8 times with tiles of 4x4.
//
// One thread transforms a few tiles (a strip), multiplies them by the transformed weights, and transforms the product back, so that both stay in its cache.
// Where there are few tiles and many channels, so that the weights are the larger matrix, it does so with some output channels (a block) instead.
type Winograd struct {
	Tile    int // results by axis: 4 or 2
	In, Out int // channels of x and y. For the data gradient x is dy and y is dx
	X, Y    npu.Desc
	Top     int // padding
	Left    int
	Flip    bool // the data gradient: weights are those of the forward pass, [3 3 Out In]
	Relu    bool
	Grad    bool      // the weight gradient: Y is dy
	Factors npu.DType // of the products; their results are float32
	Threads int
	Scratch int64 // limit of the workspace in bytes: fewer threads work where each would need too much; 0: none

	rows, cols                   int // tiles of an image
	parts, strips, blocks, width int
	common, part, second, third  int64 // see winograd.h
	left, right, product         int64 // bytes of the matrices of a part
	points, cell                 int64 // points of a tile; bytes of an element of the products' factors
}

// Sizes in bytes that decide between strips and blocks and how large they are. The strip's two matrices should fit in the second-level cache, and what is
// shared by all strips or blocks in the third.
const (
	stripBytes  = 1 << 20
	largeMatrix = 4 << 20
	sharedBytes = 12 << 20
	blockWidth  = 64
)

// Plan divides the work among threads. It fails if a layout is not supported, or if one thread already needs more than Scratch: whether it fails does not
// depend on the number of threads.
func (w *Winograd) Plan() error {
	for threads := max(w.Threads, 1); ; threads-- {
		if err := w.divide(threads); err != nil {
			return err
		}
		if w.Scratch == 0 || w.workspace() <= w.Scratch {
			return nil
		}
		if threads = min(threads, w.parts); threads == 1 {
			return fmt.Errorf("kern: a Winograd convolution with more than %d MiB of scratch memory", w.Scratch>>20)
		}
	}
}

func (w *Winograd) workspace() int64 { return w.common + int64(w.parts)*w.part }

// divide plans for a number of threads.
func (w *Winograd) divide(threads int) error {
	if _, err := picture(w.X); err != nil {
		return err
	}
	if _, err := picture(w.Y); err != nil {
		return err
	}
	if w.X.DType != w.Y.DType || w.Factors != w.X.DType && (w.Factors != npu.F32 || w.Tile != 4) {
		return fmt.Errorf("kern: no Winograd convolution of %s and %s by products of %s", w.X, w.Y, w.Factors)
	}
	y := w.Y.Shape
	w.rows, w.cols = (y[2]+w.Tile-1)/w.Tile, (y[3]+w.Tile-1)/w.Tile
	w.points, w.cell = int64(w.Tile+2)*int64(w.Tile+2), 4
	if w.Factors == npu.BF16 {
		w.cell = 2
	}
	tiles := w.tiles()
	w.strips, w.blocks, w.width = 1, 1, w.Out
	all, weights := w.points*w.cell*int64(tiles)*int64(w.In), w.points*w.cell*int64(w.In)*int64(w.Out)
	if weights > largeMatrix && all <= sharedBytes && w.Out > blockWidth {
		w.width = blockWidth
		w.blocks = (w.Out + w.width - 1) / w.width
		w.parts = min(threads, w.blocks)
	} else {
		most := max(int(stripBytes/(w.points*(w.cell*int64(w.In)+4*int64(w.Out)))), 16)
		w.strips = min((tiles+most-1)/most, tiles)
		w.parts = min(threads, w.strips)
		w.strips = min((w.strips+w.parts-1)/w.parts*w.parts, tiles)
	}
	bytes := func(rows, cols int, cell int64) int64 { return (w.points*int64(rows)*int64(cols)*cell + 63) &^ 63 }
	size := func(rows, cols int) int64 { return bytes(rows, cols, w.cell) }
	product := func(rows, cols int) int64 { return bytes(rows, cols, 4) }
	strip := (tiles + w.strips - 1) / w.strips
	switch {
	case w.Grad && w.blocks > 1:
		w.common, w.left, w.right, w.product = size(tiles, w.In), 0, size(tiles, w.width), product(w.In, w.width)
	case w.Grad:
		w.common, w.left, w.right, w.product = (int64(w.parts*w.Out)*4+63)&^63, size(strip, w.In), size(strip, w.Out), product(w.In, w.Out)
	case w.blocks > 1:
		w.common, w.left, w.right, w.product = size(tiles, w.In), 0, size(w.In, w.width), product(tiles, w.width)
	default:
		w.common, w.left, w.right, w.product = size(w.In, w.Out), size(strip, w.In), 0, product(strip, w.Out)
	}
	w.second, w.third = w.left+w.right, w.left+w.right+w.product
	if w.Grad {
		w.second, w.third = w.left, w.left+w.right
	}
	w.part = w.left + w.right + w.product
	return nil
}

func (w *Winograd) tiles() int { return w.X.Shape[0] * w.rows * w.cols }

// Parts is how many threads work; each has a quarter of the Products, those of part 0 first.
func (w *Winograd) Parts() int { return w.parts }

// Form names the way in which the work is divided, which decides about speed next to the amount of work: by strips or blocks, among how many threads, and
// whether a thread has more than one.
func (w *Winograd) Form() string {
	name, n := "strips", w.strips
	if w.blocks > 1 {
		name, n = "blocks", w.blocks
	}
	if n > w.parts {
		return fmt.Sprintf("%s of %d+", name, w.parts)
	}
	return fmt.Sprintf("%s of %d", name, w.parts)
}

// WinogradProduct is C = A·B, or C += A·B, for each of Batch matrices that follow each other: A is [M K], or stored as [K M] if TransA; B [K N], C [M N]. The
// offsets A, B and C are in the workspace, in bytes.
type WinogradProduct struct {
	Batch, M, K, N int
	TransA, Add    bool
	A, B, C        int64
}

// Products lists the products that Call's command runs, in the order that it wants them: for each part two, or four for the weight gradient. Those that it
// will not run have M = 0.
func (w *Winograd) Products() []WinogradProduct {
	var list []WinogradProduct
	tiles := w.tiles()
	for q := range w.parts {
		at := w.common + int64(q)*w.part
		for i := range 4 {
			p := WinogradProduct{Batch: int(w.points), Add: i >= 2, TransA: w.Grad, A: at, C: at + w.second}
			strip, width := (tiles+w.strips-1)/w.strips, w.width
			if i%2 == 1 {
				strip, width = tiles/w.strips, w.Out-(w.blocks-1)*w.width
			}
			if p.B = 0; w.blocks > 1 {
				p.A, p.B = 0, at
			}
			p.M, p.K, p.N = strip, w.In, width
			if w.Grad {
				p.M, p.K, p.B, p.C = w.In, strip, at+w.second, at+w.third
			}
			switch {
			case !w.Grad && i >= 2:
				continue
			case i%2 == 1 && strip*w.strips == tiles && width == w.width, i >= 2 && w.strips <= w.parts:
				p.M = 0
			}
			list = append(list, p)
		}
	}
	return list
}

// Call is the rest. Its arguments are x, w, bias or nil, y; for the weight gradient x, dy, dw, db or nil.
func (w *Winograd) Call() *Call {
	x, _ := picture(w.X)
	y, _ := picture(w.Y)
	c := &Call{kernel: "wino_conv", isa: best(), dt: C.KERN_F32, slots: []int{0, 1, 2, 3}}
	if w.Grad {
		c.kernel = "wino_conv_bwd_weights"
	}
	put := func(vs ...int) {
		for _, v := range vs {
			c.v = append(c.v, int64(v))
		}
	}
	put(w.Tile, bit(w.X.DType == npu.BF16, 1), int(w.cell), w.X.Shape[0], w.In, w.Out)
	c.v = append(append(c.v, x...), y...)
	put(w.Top, w.Left, w.rows, w.cols, w.parts, w.strips, w.blocks, w.width, bit(w.Flip, 1), bit(w.Relu, 1))
	c.v = append(c.v, w.common, w.part, w.second, w.third)
	c.products = len(c.v)
	c.v = append(c.v, make([]int64, 2*len(w.Products()))...)
	c.workspace = w.workspace()
	return c
}

// SetProduct gives product i of a Winograd command its C function, int fn(void *self, void *stream), and self, which must live as long as the command. The
// stream is the one with which the command runs.
func (c *Cmd) SetProduct(i int, fn, self unsafe.Pointer) {
	v := unsafe.Slice((*uintptr)(unsafe.Pointer(c.c.v)), c.products+2*i+2)
	v[c.products+2*i], v[c.products+2*i+1] = uintptr(fn), uintptr(self)
}

// picture is a wino_picture.
func picture(d npu.Desc) ([]int64, error) {
	_, hw, ok := order(d)
	if len(d.Shape) != 4 || !ok || d.DType != npu.F32 && d.DType != npu.BF16 || d.Layout == npu.Plain {
		return nil, fmt.Errorf("kern: no Winograd convolution of %s", d)
	}
	c, h, w := int64(d.Shape[1]), int64(d.Shape[2]), int64(d.Shape[3])
	if b := int64(Block(d.Layout)); b > 0 {
		return []int64{h, w, c * hw, b * hw, b * w, b, int64(bits.TrailingZeros64(uint64(b)))}, nil
	}
	return []int64{h, w, c * hw, 16, w * c, c, 4}, nil // as if in blocks without anything between them
}
