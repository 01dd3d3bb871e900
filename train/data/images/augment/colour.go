package augment

import "math"

func init() {
	// Color moves the pixels away from their luminance, by the factor arg: 0 is grey, 1 changes nothing.
	Register(Op{"Color", colour})
	// Hue turns the hue by arg turns, -0.5 to 0.5.
	Register(Op{"Hue", hue})
}

func colour(p *Pixels, _ *Scratch, factor float64, _ [3]byte) {
	if p.C != 3 {
		return
	}
	if native && len(p.Pix) > 0 {
		colourFast(p, factor)
		return
	}
	colourPlain(p, factor)
}

func colourPlain(p *Pixels, factor float64) {
	// Products for all differences of two bytes, as float32 like Pillow's.
	var by [511]float32
	for d := range by {
		by[d] = float32(factor) * float32(d-255)
	}
	cut := func(v float32) byte { return byte(clamp(int(v), 0, 255)) }
	for pix := p.Pix; len(pix) >= 3; pix = pix[3:] {
		q := (*[3]byte)(pix)
		l := grey(q[0], q[1], q[2])
		f := float32(l)
		q[0] = cut(f + by[int(q[0])-l+255])
		q[1] = cut(f + by[int(q[1])-l+255])
		q[2] = cut(f + by[int(q[2])-l+255])
	}
}

func hue(p *Pixels, _ *Scratch, turns float64, _ [3]byte) {
	if p.C != 3 {
		return
	}
	shift := byte(int(turns * 255))
	if native && len(p.Pix) > 0 {
		hueFast(p, shift)
		return
	}
	huePlain(p, shift)
}

func huePlain(p *Pixels, shift byte) {
	for pix := p.Pix; len(pix) >= 3; pix = pix[3:] {
		q := (*[3]byte)(pix)
		h, s, v := toHSV(q[0], q[1], q[2])
		q[0], q[1], q[2] = fromHSV(h+shift, s, v)
	}
}

// toHSV is Pillow's conversion.
func toHSV(r, g, b byte) (h, s, v byte) {
	hi, lo := max(r, g, b), min(r, g, b)
	if hi == lo {
		return 0, 0, hi
	}
	d := float32(hi - lo)
	rc, gc, bc := float32(hi-r)/d, float32(hi-g)/d, float32(hi-b)/d
	var x float32
	switch hi {
	case r:
		x = bc - gc
	case g:
		x = 2 + rc - bc
	default:
		x = 4 + gc - rc
	}
	turn := float64(x)/6 + 1
	if turn >= 1 {
		turn--
	}
	return byte(int(float64(float32(turn)) * 255)), byte(int(float64(d/float32(hi)) * 255)), hi
}

// fromHSV is Pillow's conversion back.
func fromHSV(h, s, v byte) (r, g, b byte) {
	if s == 0 {
		return v, v, v
	}
	x := float64(h) * 6 / 255
	i := int(x)
	f := float64(float32(x - float64(i)))
	fs, fv := float64(float32(float64(s)/255)), float64(v)
	round := func(x float64) byte { return byte(clamp(int(math.Floor(float64(float32(x))+0.5)), 0, 255)) }
	p, q, t := round(fv*(1-fs)), round(fv*(1-float64(fs*f))), round(fv*(1-float64(fs*(1-f))))
	switch i % 6 {
	case 0:
		return v, t, p
	case 1:
		return q, v, p
	case 2:
		return p, v, t
	case 3:
		return p, q, v
	case 4:
		return t, p, v
	}
	return v, p, q
}
