package images

import "math"

// Weights of one axis of a resize: output i is the sum of n[i] inputs from from[i] on, weighted by the fixed-point numbers
// k[i*stride:].
//
// The filter is Pillow's antialiased "bilinear": a triangle as wide as the scale, cut off at the border and normalised, in fixed point with
// fracBits bits, rounded to 8 bits after each axis, rows first. Results are equal, bit for bit, to those of Pillow up to version 11; newer ones
// sometimes begin with the columns and then differ by one level here and there.
type weights struct {
	from, n []int
	k       []int32
	stride  int
}

// fracBits leaves room for 255 times a sum of one, plus rounding, in an int32.
const fracBits = 22

// set computes the weights for the outputs first…first+count-1 of a resize of the interval [lo, hi) to out pixels, reading only inputs
// min…max-1. Positions count from min, as if the rest had been cut off, so that rounding is the same as after a real crop.
func (w *weights) set(lo, hi float64, out, first, count, min, max int) {
	scale := (hi - lo) / float64(out)
	support := math.Max(scale, 1) // half the width of the triangle
	w.stride = int(math.Ceil(support))*2 + 1
	w.from, w.n = sized(w.from, count), sized(w.n, count)
	w.k = sized(w.k, count*w.stride)
	lo -= float64(min)
	max -= min
	for i := range count {
		center := lo + (float64(first+i)+0.5)*scale
		a := clamp(int(center-support+0.5), 0, max-1)
		b := clamp(int(center+support+0.5), a+1, max)
		if b-a > w.stride {
			b = a + w.stride
		}
		sum := 0.0
		for x := a; x < b; x++ {
			sum += triangle((float64(x) - center + 0.5) / support)
		}
		k := w.k[i*w.stride:][:b-a]
		for x := a; x < b; x++ {
			v := triangle((float64(x) - center + 0.5) / support)
			if sum != 0 {
				v /= sum
			}
			k[x-a] = int32(0.5 + v*(1<<fracBits))
		}
		w.from[i], w.n[i] = a+min, b-a
	}
}

func triangle(x float64) float64 { return math.Max(0, 1-math.Abs(x)) }

func clamp(v, lo, hi int) int { return max(lo, min(v, hi)) }

// sized is a slice of length n, in the old memory where it fits.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

const half = 1 << (fracBits - 1)

// rowRGB resizes one row of three interleaved channels.
func (w *weights) rowRGB(dst, src []byte) {
	for i, from := range w.from {
		k := w.k[i*w.stride:][:w.n[i]]
		p := src[3*from:][:3*len(k)]
		r, g, b := int32(half), int32(half), int32(half)
		for j, c := range k {
			q := p[3*j:][:3:3]
			r += c * int32(q[0])
			g += c * int32(q[1])
			b += c * int32(q[2])
		}
		d := dst[3*i:][:3:3]
		d[0], d[1], d[2] = byte(r>>fracBits), byte(g>>fracBits), byte(b>>fracBits)
	}
}

// rowGray resizes one row of one channel.
func (w *weights) rowGray(dst, src []byte) {
	for i, from := range w.from {
		k := w.k[i*w.stride:][:w.n[i]]
		p := src[from:][:len(k)]
		v := int32(half)
		for j, c := range k {
			v += c * int32(p[j])
		}
		dst[i] = byte(v >> fracBits)
	}
}

// column resizes along the other axis: dst becomes the weighted sum of n rows of rows, which lie stride bytes apart.
func column(dst []byte, rows []byte, stride int, k []int32) {
	n := len(dst)
	switch len(k) {
	case 1: // k is one
		copy(dst, rows[:n])
	case 2:
		a, b := rows[:n], rows[stride:][:n]
		k0, k1 := k[0], k[1]
		for i := range dst {
			dst[i] = byte((half + k0*int32(a[i]) + k1*int32(b[i])) >> fracBits)
		}
	case 3:
		a, b, c := rows[:n], rows[stride:][:n], rows[2*stride:][:n]
		k0, k1, k2 := k[0], k[1], k[2]
		for i := range dst {
			dst[i] = byte((half + k0*int32(a[i]) + k1*int32(b[i]) + k2*int32(c[i])) >> fracBits)
		}
	case 4:
		a, b, c, d := rows[:n], rows[stride:][:n], rows[2*stride:][:n], rows[3*stride:][:n]
		k0, k1, k2, k3 := k[0], k[1], k[2], k[3]
		for i := range dst {
			dst[i] = byte((half + k0*int32(a[i]) + k1*int32(b[i]) + k2*int32(c[i]) + k3*int32(d[i])) >> fracBits)
		}
	default:
		for i := range dst {
			v := int32(half)
			for j, c := range k {
				v += c * int32(rows[j*stride+i])
			}
			dst[i] = byte(v >> fracBits)
		}
	}
}
