package augment

import (
	"bytes"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// The C kernels give the bytes of the loops in Go.
func TestNativeEqualsPlain(t *testing.T) {
	if !native {
		t.Skip("no C kernels in this build")
	}
	r := data.NewRand(6)
	for n := range 60 {
		p := &Pixels{}
		p.Reset(3+r.IntN(40), 3+r.IntN(40), 1+2*(n%2))
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
		} {
			if p.C == 1 && (name == "colour" || name == "hue") {
				continue
			}
			a, b := clone(), clone()
			f[0](a)
			f[1](b)
			if !bytes.Equal(a.Pix, b.Pix) {
				t.Errorf("%s of %d x %d x %d differs", name, p.W, p.H, p.C)
			}
		}
	}
}
