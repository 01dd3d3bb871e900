package reduce

import (
	"fmt"
	"math"
	"unsafe"
)

// Feedback is what rounding has lost, and where to write what it loses now. A residual is Old × OldScale of its block, in units in which x is divided
// by Unit. The scales are powers of two, so residuals are exact in float32.
type Feedback struct {
	Old, New           []int16
	OldScale, NewScale []float32
	Unit               float32 // from 2^-20 on; the loss scale, for example
}

// Quantise rounds blocks of x to 8 bits: q × scale of the block. block is a multiple of 32; the last block may be shorter. The scale is the largest
// magnitude of the block / 127, so no value is off by more than 1/254 of that, and one part in 10^5. A block with a number that is not finite gets the
// scale NaN and values 0, and the result is false. A block below 2^-100 becomes 0.
//
// With f, the residual is added to x before, and f.New receives what is lost now: the values decoded and the new residual make up x and the old
// residual, except for 2^-14 of a step. q and the slices of f are as long as x, those of scales have an element for each block.
func Quantise(block int, q []int8, scale, x []float32, f *Feedback) (finite bool) {
	n, blocks := len(x), Blocks(len(x), block)
	if len(q) != n || len(scale) != blocks {
		panic(fmt.Sprintf("reduce: %d values in %d blocks to %d values and %d scales", n, blocks, len(q), len(scale)))
	}
	if f != nil && (len(f.Old) != n || len(f.New) != n || len(f.OldScale) != blocks || len(f.NewScale) != blocks || !(f.Unit >= 0x1p-20)) {
		panic(fmt.Sprintf("reduce: %d values in %d blocks with residuals of %d and %d values, %d and %d scales, unit %g", n, blocks, len(f.Old),
			len(f.New), len(f.OldScale), len(f.NewScale), f.Unit))
	}
	if n == 0 {
		return true
	}
	return quantise(block, q, scale, x, f)
}

// Dequantise is the inverse of Quantise. It returns false if a scale is not finite.
func Dequantise(block int, dst []float32, q []int8, scale []float32) (finite bool) {
	if len(q) != len(dst) || len(scale) != Blocks(len(dst), block) {
		panic(fmt.Sprintf("reduce: %d values in %d blocks to %d values", len(q), len(scale), len(dst)))
	}
	if len(dst) == 0 {
		return true
	}
	return dequantise(block, dst, q, scale)
}

// SumQuantised adds the same blocks of all ranks, in rank order: ((d0 + d1) + d2) + …. Those of rank own are in dst, not rounded; those of rank r are
// at q and scale plus r × stride bytes, as Quantise wrote them. The sums replace dst.
func SumQuantised(block int, dst []float32, mem []byte, q, scale, stride, ranks, own int) {
	n := len(dst)
	if n == 0 {
		return
	}
	last := (ranks - 1) * stride
	if own < 0 || own >= ranks || stride%4 != 0 || q < 0 || scale < 0 || scale%4 != 0 || last+q+n > len(mem) || last+scale+4*Blocks(n, block) > len(mem) {
		panic(fmt.Sprintf("reduce: parts of %d ranks, %d bytes apart, values at %d, scales at %d, in %d bytes", ranks, stride, q, scale, len(mem)))
	}
	sumQuantised(block, dst, unsafe.Pointer(&mem[q]), unsafe.Pointer(&mem[scale]), stride, ranks, own)
}

// Blocks is how many blocks n values make.
func Blocks(n, block int) int {
	if block < unit || block%unit != 0 {
		panic(fmt.Sprintf("reduce: blocks of %d values, want a multiple of %d", block, unit))
	}
	return (n + block - 1) / block
}

const unit = 32

// step is how a block is rounded.
type step struct {
	size, inv      float32 // of a step, and its inverse; inv 0: all values are 0
	residual, fine float32 // unit of the residual, and the inverse of it in the unit of x
}

// steps takes the bits of the largest magnitude, and 1 / Unit.
func steps(most uint32, feedback bool, back float32) (s step) {
	if most >= 0x7f800000 {
		s.size = math.Float32frombits(0x7fc00000)
		return s
	}
	m := math.Float32frombits(most)
	if m < 0x1p-100 {
		return s
	}
	s.size, s.inv = m/127, 127/m
	if feedback {
		p := math.Float32frombits((math.Float32bits(s.size*back) + 0x7fffff) & 0xff800000) // the next power of two
		p = min(max(p, 0x1p-107), 0x1p126)
		s.residual = p * 0x1p-15
		s.fine = math.Float32frombits(0x7f000000-math.Float32bits(s.residual)) * back // the inverse of a power of two is exact
	}
	return s
}

// plainQuantise is the definition.
func plainQuantise(block int, q []int8, scale, x []float32, f *Feedback) bool {
	finite := true
	for b := range scale {
		from, to := b*block, min((b+1)*block, len(x))
		at := func(i int) float32 {
			if f == nil {
				return x[i]
			}
			return fused(float32(f.Old[i]), float32(f.OldScale[b]*f.Unit), x[i])
		}
		var most uint32
		for i := from; i < to; i++ {
			most = max(most, math.Float32bits(at(i))&0x7fffffff)
		}
		var back float32
		if f != nil {
			back = 1 / f.Unit
		}
		s := steps(most, f != nil, back)
		scale[b] = s.size
		finite = finite && s.size == s.size
		if f != nil {
			f.NewScale[b] = s.residual
		}
		for i := from; i < to; i++ {
			var k, r int32
			if s.inv != 0 {
				y := at(i)
				k = nearest(float32(y * s.inv))
				lost := float32(float64(y) - float64(k)*float64(s.size)) // exact but for the last rounding: a fused multiply-add
				r = nearest(float32(lost * s.fine))
			}
			q[i] = int8(min(max(k, -128), 127))
			if f != nil {
				f.New[i] = int16(min(max(r, -32768), 32767))
			}
		}
	}
	return finite
}

// fused is a × b + c rounded once. The product is exact in float64; the sum is rounded to odd there, so that rounding again to float32 gives the same as
// rounding once (S. Boldo and G. Melquiond, 2008).
func fused(a, b, c float32) float32 {
	p, x := float64(a)*float64(b), float64(c)
	s := p + x
	t := s - p
	lost := (p - (s - t)) + (x - t) // what the sum has lost, exactly
	if bits := math.Float64bits(s); lost != 0 && bits&1 == 0 && !math.IsInf(s, 0) && lost == lost {
		if (lost > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}

// nearest rounds ties to even; what does not fit becomes the smallest number, as processors do.
func nearest(v float32) int32 {
	if !(v >= -0x1p31 && v < 0x1p31) {
		return math.MinInt32
	}
	return int32(math.RoundToEven(float64(v)))
}

func plainDequantise(block int, dst []float32, q []int8, scale []float32) bool {
	finite := true
	for b, s := range scale {
		finite = finite && s < float32(math.Inf(1))
		for i := b * block; i < min((b+1)*block, len(dst)); i++ {
			dst[i] = float32(q[i]) * s
		}
	}
	return finite
}

func plainSumQuantised(block int, dst []float32, q, scale unsafe.Pointer, stride, ranks, own int) {
	n := len(dst)
	for i := range dst {
		var sum float32
		for r := range ranks {
			v := dst[i]
			if r != own {
				s := unsafe.Slice((*float32)(unsafe.Add(scale, r*stride)), Blocks(n, block))[i/block]
				v = float32(float32(*(*int8)(unsafe.Add(q, r*stride+i))) * s)
			}
			if r == 0 {
				sum = v
			} else {
				sum += v
			}
		}
		dst[i] = sum
	}
}
