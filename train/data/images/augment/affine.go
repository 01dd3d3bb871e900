package augment

import (
	"math"
	"strconv"
)

// Operations that move pixels. Between pixels they are bilinear, with Pillow's coordinates and roundings; beyond the border is the fill.
func init() {
	// ShearX takes each row from x + arg·y, ShearY each column from y + arg·x.
	Register(Op{"ShearX", move(func(arg float64, _ *Pixels) matrix { return matrix{1, arg, 0, 0, 1, 0} })})
	Register(Op{"ShearY", move(func(arg float64, _ *Pixels) matrix { return matrix{1, 0, 0, arg, 1, 0} })})
	// TranslateX and TranslateY take pixels from arg pixels to the right, or below.
	Register(Op{"TranslateX", move(func(arg float64, _ *Pixels) matrix { return matrix{1, 0, arg, 0, 1, 0} })})
	Register(Op{"TranslateY", move(func(arg float64, _ *Pixels) matrix { return matrix{1, 0, 0, 0, 1, arg} })})
	// TranslateXRel and TranslateYRel: arg is a fraction of the width, or of the height.
	Register(Op{"TranslateXRel", move(func(arg float64, p *Pixels) matrix { return matrix{1, 0, arg * float64(p.W), 0, 1, 0} })})
	Register(Op{"TranslateYRel", move(func(arg float64, p *Pixels) matrix { return matrix{1, 0, 0, 0, 1, arg * float64(p.H)} })})
	// Rotate turns by arg degrees, counter-clockwise, around the centre.
	Register(Op{"Rotate", move(rotation)})
}

// matrix gives the place in the old picture for a place (x, y) in the new one: (m0·x + m1·y + m2, m3·x + m4·y + m5).
type matrix [6]float64

// rotation is Pillow's matrix, to the last bit.
func rotation(degrees float64, p *Pixels) matrix {
	if degrees = math.Mod(degrees, 360); degrees < 0 {
		degrees += 360
	}
	angle := -(degrees * (math.Pi / 180))
	digits := func(x float64) float64 {
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'f', 15, 64), 64) // Python's round(x, 15)
		return x + 0                                                       // no negative zero
	}
	cos, sin := digits(math.Cos(angle)), digits(math.Sin(angle))
	cx, cy := float64(float64(p.W)/2), float64(float64(p.H)/2)
	// A product is rounded before it is added: without the conversions a processor may do it in one step, with another result.
	return matrix{cos, sin, float64(cos*-cx) + float64(sin*-cy) + cx, -sin, cos, float64(-sin*-cx) + float64(cos*-cy) + cy}
}

// move makes an operation of a function that gives the matrix.
func move(f func(arg float64, p *Pixels) matrix) func(*Pixels, *Scratch, float64, [3]byte) {
	return func(p *Pixels, s *Scratch, arg float64, fill [3]byte) {
		if arg == 0 {
			return
		}
		m, old := f(arg, p), s.copyOf(p)
		if dx, dy, ok := m.whole(p.W, p.H); ok {
			shift(p, old, dx, dy, fill)
			return
		}
		if native && len(p.Pix) > 0 {
			s.m, s.fill = m, fill
			warpFast(p, old, &s.m, &s.fill)
			return
		}
		warp(p, old, m, fill)
	}
}

// warp draws old, moved, into p.
func warp(p, old *Pixels, m matrix, fill [3]byte) {
	for y := range p.H {
		row := p.Row(y)
		for x := range p.W {
			out := row[x*p.C:][:p.C]
			fx, fy := float64(x)+0.5, float64(y)+0.5
			sx := float64(float64(m[0]*fx)+float64(m[1]*fy)) + m[2]
			sy := float64(float64(m[3]*fx)+float64(m[4]*fy)) + m[5]
			if !(sx >= 0 && sy >= 0 && sx < float64(old.W) && sy < float64(old.H)) {
				copy(out, fill[:])
				continue
			}
			old.bilinear(out, sx-0.5, sy-0.5)
		}
	}
}

// bilinear mixes the four pixels around a place, with Pillow's roundings. The conversions keep a processor from rounding once where Pillow rounds twice.
func (p *Pixels) bilinear(out []byte, x, y float64) {
	fx, fy := math.Floor(x), math.Floor(y)
	dx, dy := x-fx, y-fy
	x0, y0 := int(fx), int(fy)
	x1, y1 := min(x0+1, p.W-1), min(y0+1, p.H-1)
	x0, y0 = max(x0, 0), max(y0, 0)
	a, b := p.Pix[(y0*p.W+x0)*p.C:], p.Pix[(y0*p.W+x1)*p.C:]
	c, d := p.Pix[(y1*p.W+x0)*p.C:], p.Pix[(y1*p.W+x1)*p.C:]
	for k := range out {
		top := float64(a[k]) + float64((float64(b[k])-float64(a[k]))*dx)
		low := float64(c[k]) + float64((float64(d[k])-float64(c[k]))*dx)
		out[k] = byte(int(top + float64((low-top)*dy)))
	}
}

// shift moves the picture by whole pixels: the result at (x, y) is old at (x+dx, y+dy).
func shift(p, old *Pixels, dx, dy int, fill [3]byte) {
	from, to := clamp(-dx, 0, p.W), clamp(p.W-dx, 0, p.W) // the columns that are not fill
	for y := range p.H {
		row := p.Row(y)
		a, b := from, to
		if sy := y + dy; sy < 0 || sy >= p.H || a >= b {
			a, b = p.W, p.W
		} else {
			copy(row[a*p.C:b*p.C], old.Row(sy)[(a+dx)*p.C:])
		}
		for x := 0; x < a; x++ {
			copy(row[x*p.C:][:p.C], fill[:])
		}
		for x := b; x < p.W; x++ {
			copy(row[x*p.C:][:p.C], fill[:])
		}
	}
}

// whole reports whether the matrix moves pictures of this size by whole pixels only, and by how many.
func (m *matrix) whole(w, h int) (dx, dy int, ok bool) {
	if m[0] != 1 || m[1] != 0 || m[3] != 0 || m[4] != 1 || !(math.Abs(m[2]) <= float64(w)) || !(math.Abs(m[5]) <= float64(h)) {
		return 0, 0, false
	}
	dx, dy = int(m[2]), int(m[5])
	return dx, dy, float64(dx) == m[2] && float64(dy) == m[5]
}
