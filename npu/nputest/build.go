package nputest

import (
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// suite collects the cases of one kind for activations of type t.
type suite struct {
	kind  string
	t     npu.DType // of activations
	f     npu.DType // of what stays float32; float64 where everything is
	r     *rand.Rand
	n     int // generated shapes, besides those that are written down
	cases []Case
}

// builder makes one case.
type builder struct {
	*suite
	c Case
}

// begin starts a case; end adds it to the suite.
func (s *suite) begin(name string) *builder {
	return &builder{s, Case{Kind: s.kind, Name: name, DType: s.t}}
}

func (b *builder) end() { b.cases = append(b.cases, b.c) }

func (b *builder) tensor(x Tensor) int {
	b.c.Tensors = append(b.c.Tensors, x)
	return len(b.c.Tensors) - 1
}

// in is an input with the values of fn; rounded to its type when the case runs.
func (b *builder) in(d npu.Desc, fn values) int {
	v := make([]float64, d.Shape.Elems())
	for i := range v {
		v[i] = fn(b.r, i)
	}
	return b.tensor(Tensor{Desc: d, Values: v})
}

// out is a result whose errors are measured against size.
func (b *builder) out(d npu.Desc, size float64) int { return b.tensor(Tensor{Desc: d, Size: size}) }

func (b *builder) call(kind string, a npu.Attrs, in, out []int, inPlace ...[2]int) {
	b.c.Calls = append(b.c.Calls, Call{Kind: kind, Attrs: a, In: in, Out: out, InPlace: inPlace})
}

// without binds outputs of the last call to nil.
func (b *builder) without(outs ...int) { b.c.Calls[len(b.c.Calls)-1].Nil = outs }

// act, full and i32 describe plain tensors; any leaves the layout to the device.
func (s *suite) act(shape ...int) npu.Desc  { return npu.D(s.t, shape...) }
func (s *suite) any(shape ...int) npu.Desc  { return npu.D(s.t, shape...).With(npu.Any) }
func (s *suite) full(shape ...int) npu.Desc { return npu.D(s.f, shape...) }
func i32(shape ...int) npu.Desc             { return npu.D(npu.I32, shape...) }

// results are the types that a sum of activations may have.
func (s *suite) results() []npu.DType {
	if s.t == s.f {
		return []npu.DType{s.t}
	}
	return []npu.DType{s.t, s.f}
}

// chance is true once in n times.
func (s *suite) chance(n int) bool { return s.r.IntN(n) == 0 }

func (s *suite) pick(v ...int) int { return v[s.r.IntN(len(v))] }

// dims are n extents of 1 to top.
func (s *suite) dims(n, top int) []int {
	d := make([]int, n)
	for i := range d {
		d[i] = 1 + s.r.IntN(top)
	}
	return d
}

// values gives element i of a tensor.
type values func(r *rand.Rand, i int) float64

func normal(r *rand.Rand, _ int) float64 { return r.NormFloat64() }

// positive stays away from 0: variances, divisors, arguments of logarithms.
func positive(r *rand.Rand, _ int) float64 { return 0.1 + r.Float64() }

// halves are few values, so many are equal.
func halves(r *rand.Rand, _ int) float64 { return float64(r.IntN(7)-3) / 2 }

// cycle repeats values.
func cycle(v ...float64) values { return func(_ *rand.Rand, i int) float64 { return v[i%len(v)] } }

// below are integers from 0 to n-1.
func below(n int) values { return func(r *rand.Rand, _ int) float64 { return float64(r.IntN(n)) } }

// scaled is normal times k.
func scaled(k float64) values {
	return func(r *rand.Rand, _ int) float64 { return k * r.NormFloat64() }
}

func with(a npu.Attrs, key string, v any) npu.Attrs {
	a = a.Clone()
	a[key] = v
	return a
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
