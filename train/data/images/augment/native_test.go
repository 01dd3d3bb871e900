package augment

import (
	"bytes"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// The C kernels give the bytes of the loops in Go, with every set of instructions.
func TestNativeEqualsPlain(t *testing.T) {
	if !native {
		t.Skip("no C kernels in this build")
	}
	best := level
	defer func() { level = best }()
	for l := range best() + 1 {
		level = func() int { return l }
		nativeEqualsPlain(t, l)
	}
}

func nativeEqualsPlain(t *testing.T, l int) {
	r := data.NewRand(6)
	var one [256]byte
	var three [3][256]byte
	for v := range one {
		one[v], three[0][v], three[1][v], three[2][v] = byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256))
	}
	for n := range 60 {
		p := &Pixels{}
		p.Reset(3+r.IntN(40), 3+r.IntN(40), 1+2*(n%2))
		if n < 4 {
			p.Reset(3+r.IntN(600), 3+r.IntN(12), 1+2*(n%2)) // rows in several chunks
		}
		for i := range p.Pix {
			p.Pix[i] = byte(r.IntN(256))
		}
		clone := func() *Pixels {
			q := &Pixels{}
			q.Reset(p.W, p.H, p.C)
			copy(q.Pix, p.Pix)
			return q
		}
		factor, fill := r.Uniform(-0.5, 2.5), [3]byte{1, 2, 3}
		m := rotation(r.Uniform(-180, 180), p)
		m[1] += r.Uniform(-0.3, 0.3)
		shift := byte(r.IntN(256))
		for name, f := range map[string][2]func(q *Pixels){
			"warp":      {func(q *Pixels) { warpFast(q, p, &m, &fill) }, func(q *Pixels) { warp(q, p, m, fill) }},
			"sharpness": {func(q *Pixels) { sharpnessFast(q, p, factor) }, func(q *Pixels) { sharpnessPlain(q, p, factor) }},
			"colour":    {func(q *Pixels) { colourFast(q, factor) }, func(q *Pixels) { colourPlain(q, factor) }},
			"hue":       {func(q *Pixels) { hueFast(q, shift) }, func(q *Pixels) { huePlain(q, shift) }},
			"map": {func(q *Pixels) {
				if !mapFast(q.Pix, &one) {
					mapPlain(q.Pix, &one)
				}
			}, func(q *Pixels) { mapPlain(q.Pix, &one) }},
			"map by channel": {func(q *Pixels) {
				if !mapChannelsFast(q, &three) {
					mapChannelsPlain(q, &three)
				}
			}, func(q *Pixels) { mapChannelsPlain(q, &three) }},
			"luminance": {func(q *Pixels) { q.Pix[0] = byte(greySumFast(q)) }, func(q *Pixels) { q.Pix[0] = byte(greySumPlain(q)) }},
		} {
			if p.C == 1 && (name == "colour" || name == "hue" || name == "map by channel" || name == "luminance") {
				continue
			}
			a, b := clone(), clone()
			f[0](a)
			f[1](b)
			if !bytes.Equal(a.Pix, b.Pix) {
				t.Errorf("%s of %d x %d x %d differs at level %d", name, p.W, p.H, p.C, l)
			}
		}
	}
}

// Of the result's memory, only the pixels are written: others may own what lies behind.
func TestNativeWritesPixelsOnly(t *testing.T) {
	if !native {
		t.Skip("no C kernels in this build")
	}
	for _, c := range []int{1, 3} {
		for w := 1; w < 9; w++ {
			old, memory := &Pixels{}, bytes.Repeat([]byte{0xA5}, w*2*c+8)
			old.Reset(w, 2, c)
			p := &Pixels{W: w, H: 2, C: c, Pix: memory[:w*2*c]}
			warpFast(p, old, &matrix{1, 0, 0, 0, 1, 0}, &[3]byte{})
			if behind := memory[w*2*c:]; !bytes.Equal(behind, bytes.Repeat([]byte{0xA5}, 8)) {
				t.Errorf("%d x 2 x %d: behind the pixels is %x", w, c, behind)
			}
		}
	}
}

// All colours keep their bytes when their hue is turned, compared with the loop in Go: each quotient of two bytes occurs.
func TestNativeHueOfAllColours(t *testing.T) {
	if !native {
		t.Skip("no C kernels in this build")
	}
	a, b := &Pixels{}, &Pixels{}
	a.Reset(256, 256, 3)
	b.Reset(256, 256, 3)
	for n := range 6 { // the greatest and the least byte take all values, at each place
		for i := range 256 * 256 {
			hi, mid := i>>8, i&255
			v := [3]int{hi, min(mid, hi), min(n*7, mid, hi)}
			for k := range 3 {
				a.Pix[3*i+[6][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}[n][k]] = byte(v[k])
			}
		}
		copy(b.Pix, a.Pix)
		hueFast(a, byte(n*41))
		huePlain(b, byte(n*41))
		if !bytes.Equal(a.Pix, b.Pix) {
			t.Errorf("order %d differs", n)
		}
	}
}
