package augment

import "math"

// Operations that move pixels. Between pixels they are bilinear, with Pillow's coordinates and rounding to within one level; beyond the border is the fill.
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

func rotation(degrees float64, p *Pixels) matrix {
	angle := -math.Mod(degrees, 360) * math.Pi / 180
	digits := func(x float64) float64 { return math.RoundToEven(x*1e15) / 1e15 }
	cos, sin := digits(math.Cos(angle)), digits(math.Sin(angle))
	cx, cy := float64(float64(p.W)/2), float64(float64(p.H)/2)
	return matrix{cos, sin, float64(cos*-cx) + float64(sin*-cy) + cx, -sin, cos, float64(-sin*-cx) + float64(cos*-cy) + cy}
}

// move makes an operation of a function that gives the matrix.
func move(f func(arg float64, p *Pixels) matrix) func(*Pixels, *Scratch, float64, [3]byte) {
	return func(p *Pixels, s *Scratch, arg float64, fill [3]byte) {
		if arg == 0 {
			return
		}
		m, old := f(arg, p), s.copyOf(p)
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
			// A product is rounded before it is added: without the conversions a processor may do it in one step, with another result.
			fx, fy := float64(x)+0.5, float64(y)+0.5
			sx := float64(float64(m[0]*fx)+float64(m[1]*fy)) + m[2]
			sy := float64(float64(m[3]*fx)+float64(m[4]*fy)) + m[5]
			if !(sx >= 0 && sy >= 0 && sx < float64(old.W) && sy < float64(old.H)) {
				copy(out, fill[:])
				continue
			}
			old.bilinear(out, int32(float64((sx-0.5)*fixedOne)+fixedBias)-fixedBias, int32(float64((sy-0.5)*fixedOne)+fixedBias)-fixedBias)
		}
	}
}

// Places are fixed-point numbers with fixedBits bits behind the point. The bias makes the conversion round down below zero too.
const (
	fixedBits = 14
	fixedOne  = 1 << fixedBits
	fixedBias = fixedOne
)

// bilinear mixes the four pixels around a place.
func (p *Pixels) bilinear(out []byte, x, y int32) {
	dx, dy := int(x&(fixedOne-1)), int(y&(fixedOne-1))
	x0, y0 := int(x>>fixedBits), int(y>>fixedBits)
	x1, y1 := min(x0+1, p.W-1), min(y0+1, p.H-1)
	x0, y0 = max(x0, 0), max(y0, 0)
	a, b := p.Pix[(y0*p.W+x0)*p.C:], p.Pix[(y0*p.W+x1)*p.C:]
	c, d := p.Pix[(y1*p.W+x0)*p.C:], p.Pix[(y1*p.W+x1)*p.C:]
	for k := range out {
		top := int(a[k])<<fixedBits + (int(b[k])-int(a[k]))*dx
		low := int(c[k])<<fixedBits + (int(d[k])-int(c[k]))*dx
		out[k] = byte((top<<fixedBits + (low-top)*dy) >> (2 * fixedBits))
	}
}
