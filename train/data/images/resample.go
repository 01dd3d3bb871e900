package images

import "math"

// weights of one axis of a resize: output i is the sum of taps inputs from from[i] on, weighted by the fixed-point numbers
// k[i*taps:].
//
// The filter is Pillow's antialiased "bilinear": a triangle as wide as the scale, cut off at the border and normalised, in fixed point with
// fracBits bits, rounded to 8 bits after each axis, rows first. Results are equal, bit for bit, to those of Pillow up to version 11; newer ones
// sometimes begin with the columns and then differ by one level here and there.
type weights struct {
	from []int
	taps int // the same for all outputs, so that inner loops have a fixed length; weights that are not needed are 0
	k    []int32
	n    []int // needed weights, while they are made
}

// fracBits leaves room for 255 times a sum of one, plus rounding, in an int32.
const fracBits = 22

// set computes the weights for the outputs first…first+count-1 of a resize of the interval [lo, hi) to out pixels, reading only inputs
// low…high-1. Positions count from low, as if the rest had been cut off, so that rounding is the same as after a real crop. Products are rounded before
// they are added, so that no processor makes one step of the two.
func (w *weights) set(lo, hi float64, out, first, count, low, high int) {
	scale := (hi - lo) / float64(out)
	support := max(scale, 1) // half the width of the triangle
	lo -= float64(low)
	size := high - low
	w.from, w.n = sized(w.from, count), sized(w.n, count)
	w.taps = 0
	for i := range count {
		center := lo + float64((float64(first+i)+0.5)*scale)
		a := clamp(int(center-support+0.5), 0, size-1)
		b := clamp(int(center+support+0.5), a+1, size)
		w.from[i], w.n[i] = a, b-a
		w.taps = max(w.taps, b-a)
	}
	w.k = sized(w.k, count*w.taps)
	clear(w.k)
	for i := range count {
		center := lo + float64((float64(first+i)+0.5)*scale)
		a, n := w.from[i], w.n[i]
		// At the end of the line the fixed number of taps begins earlier, with zeros.
		start := min(a, size-w.taps)
		k := w.k[i*w.taps:][a-start:][:n]
		sum := 0.0
		for j := range k {
			sum += triangle((float64(a+j) - center + 0.5) / support)
		}
		for j := range k {
			v := triangle((float64(a+j) - center + 0.5) / support)
			if sum != 0 {
				v /= sum
			}
			k[j] = int32(0.5 + float64(v*(1<<fracBits)))
		}
		w.from[i] = start + low
	}
}

func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

func clamp(v, lo, hi int) int { return max(lo, min(v, hi)) }

// sized is a slice of length n, in the old memory where it fits.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

const half = 1 << (fracBits - 1)

// rowRGB resizes one row of three interleaved channels. The usual numbers of taps are written out; arrays of fixed size spare the
// bounds checks. The row begins with column x.
func (w *weights) rowRGB(dst, src []byte, x int) {
	switch w.taps {
	case 2:
		w.rowRGB2(dst, src, x)
		return
	case 3:
		w.rowRGB3(dst, src, x)
		return
	case 4:
		w.rowRGB4(dst, src, x)
		return
	}
	for i, from := range w.from {
		k := w.k[i*w.taps:][:w.taps]
		p := src[3*(from-x):][:3*len(k)]
		r, g, b := int32(half), int32(half), int32(half)
		for len(k) >= 2 {
			q, c, e := (*[6]byte)(p), k[0], k[1]
			r += c*int32(q[0]) + e*int32(q[3])
			g += c*int32(q[1]) + e*int32(q[4])
			b += c*int32(q[2]) + e*int32(q[5])
			p, k = p[6:], k[2:]
		}
		if len(k) == 1 {
			q, c := (*[3]byte)(p), k[0]
			r, g, b = r+c*int32(q[0]), g+c*int32(q[1]), b+c*int32(q[2])
		}
		put(dst[3*i:], r, g, b)
	}
}

func put(dst []byte, r, g, b int32) {
	d := (*[3]byte)(dst)
	d[0], d[1], d[2] = byte(r>>fracBits), byte(g>>fracBits), byte(b>>fracBits)
}

func (w *weights) rowRGB2(dst, src []byte, x int) {
	for i, from := range w.from {
		k, q := (*[2]int32)(w.k[2*i:]), (*[6]byte)(src[3*(from-x):])
		put(dst[3*i:], half+k[0]*int32(q[0])+k[1]*int32(q[3]), half+k[0]*int32(q[1])+k[1]*int32(q[4]), half+k[0]*int32(q[2])+k[1]*int32(q[5]))
	}
}

func (w *weights) rowRGB3(dst, src []byte, x int) {
	for i, from := range w.from {
		k, q := (*[3]int32)(w.k[3*i:]), (*[9]byte)(src[3*(from-x):])
		put(dst[3*i:], half+k[0]*int32(q[0])+k[1]*int32(q[3])+k[2]*int32(q[6]),
			half+k[0]*int32(q[1])+k[1]*int32(q[4])+k[2]*int32(q[7]),
			half+k[0]*int32(q[2])+k[1]*int32(q[5])+k[2]*int32(q[8]))
	}
}

func (w *weights) rowRGB4(dst, src []byte, x int) {
	for i, from := range w.from {
		k, q := (*[4]int32)(w.k[4*i:]), (*[12]byte)(src[3*(from-x):])
		put(dst[3*i:], half+k[0]*int32(q[0])+k[1]*int32(q[3])+k[2]*int32(q[6])+k[3]*int32(q[9]),
			half+k[0]*int32(q[1])+k[1]*int32(q[4])+k[2]*int32(q[7])+k[3]*int32(q[10]),
			half+k[0]*int32(q[2])+k[1]*int32(q[5])+k[2]*int32(q[8])+k[3]*int32(q[11]))
	}
}

// rowGray resizes one row of one channel.
func (w *weights) rowGray(dst, src []byte, x int) {
	for i, from := range w.from {
		k := w.k[i*w.taps:][:w.taps]
		p := src[from-x:][:len(k)]
		v := int32(half)
		for j, c := range k {
			v += c * int32(p[j])
		}
		dst[i] = byte(v >> fracBits)
	}
}

// column resizes along the other axis: dst becomes the weighted sum of len(k) rows, which lie stride bytes apart.
func column(dst []byte, rows []byte, stride int, k []int32) {
	n := len(dst)
	switch len(k) {
	case 1:
		copy(dst, rows[:n]) // a single weight is one
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
