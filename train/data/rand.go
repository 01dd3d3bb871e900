package data

import "math/bits"

// Rand is the random stream of one sample: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). It takes eight bytes, is seeded
// in place without allocation, and its numbers are part of gotrain's format: they never change, so that a resumed run augments
// exactly as the interrupted one would have. (math/rand/v2 makes no such promise for its derived methods.)
type Rand struct{ s uint64 }

const golden = 0x9e3779b97f4a7c15

// mix64 is SplitMix64's finaliser, a bijection that makes every output bit depend on every input bit.
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// NewRand returns the stream of a plain seed.
func NewRand(seed uint64) *Rand { return &Rand{mix64(seed)} }

// SampleRand is the stream of sample index in an epoch. It depends on nothing else: not on rank, world size, worker,
// batch size or position in the epoch.
func SampleRand(seed uint64, epoch, index int) Rand {
	h := mix64(seed + golden)
	h = mix64(h ^ uint64(epoch)*0xd1342543de82ef95 + golden)
	return Rand{mix64(h ^ uint64(index)*0xaef17502108ef2d9 + golden)}
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	r.s += golden
	return mix64(r.s)
}

// Float64 is uniform in [0, 1), a multiple of 2⁻⁵³.
func (r *Rand) Float64() float64 { return float64(float64(r.Uint64()>>11) * 0x1p-53) }

// Uniform is uniform in [lo, hi). The product is rounded before the sum, on every processor alike.
func (r *Rand) Uniform(lo, hi float64) float64 { return lo + float64((hi-lo)*r.Float64()) }

// IntN is uniform in [0, n); n must be positive. The bias is below n·2⁻⁶⁴.
func (r *Rand) IntN(n int) int {
	if n <= 0 {
		panic("data: Rand.IntN requires a positive bound")
	}
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(hi)
}

// Bool is true with probability p.
func (r *Rand) Bool(p float64) bool { return r.Float64() < p }
