package lower

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

var ropeRules = map[string]rule{npu.Rope: {lower: lowerRope}}

const rotary = "RotaryPositionEmbedding"

// angles are the cosines and sines by which heads are rotated, f32 [1 or B, S, 1, width].
type angles struct{ cos, sin Tensor }

// lowerRope rotates in f32, because sine and cosine would have to be rounded to the type of x otherwise.
func lowerRope(b *builder) {
	x, y := b.in(0), b.out(0)
	fused := b.caps.Has(rotary) && fits(x.Dims, b.op.Attrs)
	width := x.Dims[3] / 2
	if fused {
		width *= 2
	}
	a := b.angles(x.Dims, width)
	turn := func(x, y Tensor) {
		if fused {
			mode := 0
			if adjacent(b.op.Attrs) {
				mode = 1
			}
			b.call(rotary, x, a.cos, a.sin, mode, y)
			return
		}
		b.turn(x, y, a)
	}
	if x.DType == Float32 && y.DType == Float32 {
		b.apart(y, []Tensor{x}, func(dst Tensor) { turn(x, dst) })
		return
	}
	f, t := b.full(x), b.temp(Float32, y.Dims...)
	turn(f, t)
	b.cast(t, y)
}

func adjacent(a npu.Attrs) bool { return a.Str("pairs") == "adjacent" }

// fits reports whether the operator takes x [B S H D]. For adjacent pairs its tables must be the same for all sequences.
func fits(d []int64, a npu.Attrs) bool {
	switch {
	case d[3] >= 896:
		return false
	case adjacent(a):
		return !a.Bool("pos") && d[0]*d[2] < 1000
	}
	return d[0] < 1000 && d[2] < 1000
}

// turn computes (u·cos - v·sin, v·cos + u·sin) of each pair.
func (b *builder) turn(x, y Tensor, a angles) {
	pair := func(t Tensor) (u, v Tensor) {
		half := t.Dims[3] / 2
		if adjacent(b.op.Attrs) {
			return t.every(3, 0, half, 2), t.every(3, 1, half, 2)
		}
		return t.slice(3, 0, half), t.slice(3, half, 2*half)
	}
	u, v := pair(x)
	p, q := pair(y)
	b.call("Mul", u, a.cos, p)
	b.call("InplaceAddcmul", p, v, a.sin, number(-1))
	b.call("Mul", v, a.cos, q)
	b.call("InplaceAddcmul", q, u, a.sin, number(1))
}

// table is the cosine or sine (sin) at positions 0, step, … of n, f32 [n width]. A table of the width of a head has the angle of element i in column i,
// one of half the width that of pair i.
func (b *builder) table(sin bool, n, step, d, width int64) Tensor {
	a := b.op.Attrs
	freq := npu.Attrs{}
	for _, k := range []string{"theta", "factor", "low", "high", "original", "inverse"} {
		if v, ok := a[k]; ok {
			freq[k] = v
		}
	}
	wide := ""
	if width == d {
		wide = a.Str("pairs")
	}
	key := fmt.Sprintf("rope sin=%v n=%d step=%d d=%d %s %s", sin, n, step, d, wide, freq)
	return b.constant(key, Float32, func() []byte {
		pairs := kind.RopeFrequencies(a, int(d))
		f := make([]float64, width)
		for j := range f {
			i := int64(j)
			switch {
			case wide == "adjacent":
				i /= 2
			case wide == "half":
				i %= d / 2
			}
			f[j] = pairs[i]
		}
		sign := 1.0
		if a.Bool("inverse") {
			sign = -1
		}
		return floats(n*width, func(i int64) float64 {
			s, c := math.Sincos(float64(i/width*step) * f[i%width])
			if sin {
				return sign * s
			}
			return c
		})
	}, n, width)
}

// angles are those of the positions: the index along S, or input 1.
func (b *builder) angles(x []int64, width int64) angles {
	s, d := x[1], x[3]
	if b.op.Attrs.Bool("pos") {
		return b.anglesAt(b.in(1).flat(), x, width)
	}
	return angles{b.table(false, s, 1, d, width).reshape(1, s, 1, width), b.table(true, s, 1, d, width).reshape(1, s, 1, width)}
}

// stretch is the number of rows of the tables of anglesAt; positions are below its square.
const stretch = 1024

// anglesAt are those of positions that are data, which generation has. A position is split into stretch·q + r, and the angles of both parts are added:
// cos(a+b) = cos a·cos b - sin a·sin b, sin(a+b) = sin a·cos b + cos a·sin b. Positions outside are moved to the nearest inside, because an index outside
// of a table is undefined.
func (b *builder) anglesAt(pos Tensor, x []int64, width int64) angles {
	n, d := pos.Elems(), x[3]
	shape := []int64{x[0], x[1], 1, width}
	rows := func(table, at Tensor) Tensor {
		t := b.temp(Float32, n, width)
		b.call("IndexSelect", table, 0, at, t)
		return t.reshape(shape...)
	}
	safe := b.temp(Int32, n)
	b.call("Clamp", pos, integer(Int32, 0), integer(Int32, stretch*stretch-1), safe)
	f, g, q, r := b.temp(Float32, n), b.temp(Float32, n), b.temp(Int32, n), b.temp(Int32, n)
	b.call("Cast", safe, Float32, f)
	b.call("Muls", f, number(1.0/stretch), g)
	b.call("Cast", g, Int32, q) // towards zero
	b.call("Add", safe, q, integer(Int32, -stretch), r)
	cosA, sinA := rows(b.table(false, stretch, stretch, d, width), q), rows(b.table(true, stretch, stretch, d, width), q)
	cosB, sinB := rows(b.table(false, stretch, 1, d, width), r), rows(b.table(true, stretch, 1, d, width), r)
	a := angles{b.temp(Float32, shape...), b.temp(Float32, shape...)}
	b.call("Mul", cosA, cosB, a.cos)
	b.call("InplaceAddcmul", a.cos, sinA, sinB, number(-1))
	b.call("Mul", sinA, cosB, a.sin)
	b.call("InplaceAddcmul", a.sin, cosA, sinB, number(1))
	return a
}
