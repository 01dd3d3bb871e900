package reduce

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// eachISA runs a test with every instruction set of this processor.
func eachISA(t *testing.T, f func(t *testing.T)) {
	best := limit(2)
	defer limit(2)
	for isa := range best + 1 {
		limit(isa)
		t.Run(Impl(), f)
	}
}

// gradient draws values of very different sizes; kind chooses what is special about a block.
func gradient(rng *rand.Rand, n, block int) []float32 {
	x := make([]float32, n)
	kind, size := 0, 1.0
	for i := range x {
		if i%block == 0 {
			kind, size = rng.IntN(12), math.Exp2(float64(rng.IntN(40)-30))
		}
		v := float32(rng.NormFloat64() * size)
		switch kind {
		case 0: // ties: whole and half steps
			v = float32(rng.IntN(509)-254) / 2
			if i%block == 0 {
				v = 127
			}
		case 1: // subnormals
			v = math.Float32frombits(rng.Uint32() & 0x807fffff)
		case 2: // close to where blocks become 0
			v *= 0x1p-100 / float32(size)
		case 3: // up to the largest number
			v = math.Float32frombits(rng.Uint32()&0x80ffffff | 0x7e000000)
		case 4:
			v = float32(math.Copysign(0, float64(v)))
		case 5: // not finite, here and there
			switch rng.IntN(200) {
			case 0:
				v = float32(math.Inf(1))
			case 1:
				v = float32(math.Inf(-1))
			case 2:
				v = math.Float32frombits(0x7fc00000)
			}
		}
		x[i] = v
	}
	return x
}

func sameFloats(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
			return i
		}
	}
	return -1
}

type state struct {
	q        []int8
	scale    []float32
	feedback *Feedback
}

func newState(n, block int, unit float32) state {
	b := Blocks(n, block)
	f := &Feedback{Old: make([]int16, n), New: make([]int16, n), OldScale: make([]float32, b), NewScale: make([]float32, b), Unit: unit}
	return state{make([]int8, n), make([]float32, b), f}
}

func checkQuantise(t *testing.T, rng *rand.Rand, n, block int, unit float32, feedback bool) {
	t.Helper()
	x := gradient(rng, n, block)
	a, b := newState(n, block, unit), newState(n, block, unit)
	for i := range a.feedback.Old {
		a.feedback.Old[i] = int16(rng.IntN(32769) - 16384)
	}
	for i := range a.feedback.OldScale {
		a.feedback.OldScale[i] = float32(math.Exp2(float64(rng.IntN(60) - 60)))
	}
	copy(b.feedback.Old, a.feedback.Old)
	copy(b.feedback.OldScale, a.feedback.OldScale)
	if !feedback {
		a.feedback, b.feedback = nil, nil
	}
	fa, fb := Quantise(block, a.q, a.scale, x, a.feedback), plainQuantise(block, b.q, b.scale, x, b.feedback)
	where := fmt.Sprintf("n %d block %d unit %g feedback %v", n, block, unit, feedback)
	if fa != fb {
		t.Fatalf("%s: finite %v, plain %v", where, fa, fb)
	}
	if i := sameFloats(a.scale, b.scale); i >= 0 {
		t.Fatalf("%s: scale %d is %g, plain %g", where, i, a.scale[i], b.scale[i])
	}
	for i := range x {
		if a.q[i] != b.q[i] {
			t.Fatalf("%s: value %d of %g is %d, plain %d (scale %g)", where, i, x[i], a.q[i], b.q[i], a.scale[i/block])
		}
		if feedback && a.feedback.New[i] != b.feedback.New[i] {
			t.Fatalf("%s: residual %d of %g is %d, plain %d", where, i, x[i], a.feedback.New[i], b.feedback.New[i])
		}
	}
	if feedback {
		if i := sameFloats(a.feedback.NewScale, b.feedback.NewScale); i >= 0 {
			t.Fatalf("%s: residual scale %d is %g, plain %g", where, i, a.feedback.NewScale[i], b.feedback.NewScale[i])
		}
	}
	da, db := make([]float32, n), make([]float32, n)
	if fa, fb := Dequantise(block, da, a.q, a.scale), plainDequantise(block, db, b.q, b.scale); fa != fb {
		t.Fatalf("%s: decoded finite %v, plain %v", where, fa, fb)
	}
	if i := sameFloats(da, db); i >= 0 {
		t.Fatalf("%s: decoded %d is %g, plain %g", where, i, da[i], db[i])
	}
}

// TestQuantiseSameBits compares every implementation with the plain one.
func TestQuantiseSameBits(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{1, 31, 32, 33, 255, 256, 1000, 4096, 5002} {
			for _, block := range []int{32, 64, 256, 1024, 4096} {
				for _, unit := range []float32{1, 65536, 3.7, 0x1p-20, 0x1p126} {
					checkQuantise(t, rng, n, block, unit, true)
				}
				checkQuantise(t, rng, n, block, 1, false)
			}
		}
		for _, block := range []int{64, 1024} { // more than the nearest caches hold
			checkQuantise(t, rng, 1<<16+5, block, 1, true)
			checkQuantise(t, rng, 1<<16+5, block, 1, false)
		}
	})
}

// FuzzQuantise compares the implementation in use with the plain one on any bits.
func FuzzQuantise(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x7f, 1, 2, 3, 4}, uint8(0), uint32(0x3f800000))
	f.Add([]byte{0xff, 0xff, 0x7f, 0x7f, 0, 0, 0, 0x80}, uint8(3), uint32(0x47800000))
	f.Fuzz(func(t *testing.T, b []byte, size uint8, unitBits uint32) {
		n, block := len(b)/6, 32<<(size%4)
		u := math.Float32frombits(unitBits)
		if n == 0 || n > 4096 || !(u >= 0x1p-20) || math.IsInf(float64(u), 0) {
			return
		}
		x := make([]float32, n)
		a, p := newState(n, block, u), newState(n, block, u)
		for i := range x {
			x[i] = math.Float32frombits(uint32(b[6*i]) | uint32(b[6*i+1])<<8 | uint32(b[6*i+2])<<16 | uint32(b[6*i+3])<<24)
			a.feedback.Old[i] = int16(uint16(b[6*i+4]) | uint16(b[6*i+5])<<8)
		}
		for i := range a.feedback.OldScale {
			a.feedback.OldScale[i] = float32(math.Exp2(float64(b[i]%200) - 122))
		}
		copy(p.feedback.Old, a.feedback.Old)
		copy(p.feedback.OldScale, a.feedback.OldScale)
		fa, fp := Quantise(block, a.q, a.scale, x, a.feedback), plainQuantise(block, p.q, p.scale, x, p.feedback)
		if fa != fp || !slices.Equal(a.q, p.q) || !slices.Equal(a.feedback.New, p.feedback.New) || sameFloats(a.scale, p.scale) >= 0 ||
			sameFloats(a.feedback.NewScale, p.feedback.NewScale) >= 0 {
			t.Fatalf("differs from plain: block %d unit %g x %v\n%v\n%v", block, u, x, a, p)
		}
	})
}

// TestQuantiseBound: no value is off by more than 1/254 of the largest of its block; with feedback, decoded and residual make up what came in.
func TestQuantiseBound(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		const n, block, unit = 64 * 256, 256, 1024
		s := newState(n, block, unit)
		for round := range 20 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rng.NormFloat64() * math.Exp2(float64(i/block%30-20)))
			}
			y := slices.Clone(x)
			f := s.feedback
			for i := range y {
				y[i] += float32(f.Old[i]) * f.OldScale[i/block] * unit
			}
			if !Quantise(block, s.q, s.scale, x, f) {
				t.Fatal("not finite")
			}
			d := make([]float32, n)
			Dequantise(block, d, s.q, s.scale)
			for b := range s.scale {
				most := 0.0
				for i := b * block; i < (b+1)*block; i++ {
					most = max(most, math.Abs(float64(y[i])))
				}
				for i := b * block; i < (b+1)*block; i++ {
					lost := float64(y[i]) - float64(d[i])
					if math.Abs(lost) > most/254*(1+1e-5) {
						t.Fatalf("round %d: %g became %g in a block of %g", round, y[i], d[i], most)
					}
					residual := float64(f.New[i]) * float64(f.NewScale[b]) * unit
					if math.Abs(lost-residual) > most/127*0x1p-14 {
						t.Fatalf("round %d: %g became %g, and the residual is %g", round, y[i], d[i], residual)
					}
				}
			}
			f.Old, f.New, f.OldScale, f.NewScale = f.New, f.Old, f.NewScale, f.OldScale
		}
	})
}

// TestFused compares the plain fused multiply-add with arithmetic of 200 bits.
func TestFused(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 200000 {
		a, b := float32(rng.IntN(65536)-32768), math.Float32frombits(rng.Uint32()&0x3fffffff|0x20000000)
		c := math.Float32frombits(rng.Uint32()&0xbfffffff | 0x20000000)
		if rng.IntN(2) == 0 { // close to half a step of the result
			c = a * b * float32(rng.IntN(1<<20))
		}
		x := new(big.Float).SetPrec(200).SetFloat64(float64(a))
		x.Mul(x, new(big.Float).SetPrec(200).SetFloat64(float64(b)))
		x.Add(x, new(big.Float).SetPrec(200).SetFloat64(float64(c)))
		want, _ := x.Float32()
		if got := fused(a, b, c); got != want {
			t.Fatalf("%g × %g + %g = %g, want %g", a, b, c, got, want)
		}
	}
}

func TestQuantiseNotFinite(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		for _, bad := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
			for _, at := range []int{0, 31, 255, 256, 511, 520} {
				x := make([]float32, 521)
				for i := range x {
					x[i] = float32(i)
				}
				x[at] = bad
				q, scale, d := make([]int8, len(x)), make([]float32, 3), make([]float32, len(x))
				if Quantise(256, q, scale, x, nil) || Dequantise(256, d, q, scale) {
					t.Fatalf("%g at %d is not reported", bad, at)
				}
				for i := range x {
					if same := i/256 == at/256; same != (d[i] != d[i]) {
						t.Fatalf("%g at %d: element %d is %g", bad, at, i, d[i])
					}
				}
			}
		}
	})
}

func TestSumQuantised(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for _, ranks := range []int{1, 2, 3, 5} {
			for _, n := range []int{1, 256, 777} {
				for own := range ranks {
					const block = 64
					stride := (n + 4*Blocks(n, block) + 3 + 8) &^ 3
					at := 4 * Blocks(n, block)
					mem := make([]byte, ranks*stride)
					for r := range ranks {
						x := gradient(rng, n, block)
						part := mem[r*stride:]
						Quantise(block, unsafe.Slice((*int8)(unsafe.Pointer(&part[at])), n), unsafe.Slice((*float32)(unsafe.Pointer(&part[0])), Blocks(n, block)), x, nil)
					}
					a := gradient(rng, n, block)
					b := slices.Clone(a)
					SumQuantised(block, a, mem, at, 0, stride, ranks, own)
					plainSumQuantised(block, b, unsafe.Pointer(&mem[at]), unsafe.Pointer(&mem[0]), stride, ranks, own)
					if i := sameFloats(a, b); i >= 0 {
						t.Fatalf("ranks %d own %d n %d: sum %d is %g, plain %g", ranks, own, n, i, a[i], b[i])
					}
				}
			}
		}
	})
}

func TestNarrowSameBits(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, dt := range []npu.DType{npu.F16, npu.BF16} {
			for _, by := range []float32{1, 0x1p-7, 0x1p9} {
				for _, n := range []int{1, 15, 32, 100, 5001} {
					x := gradient(rng, n, 64)
					for i := range x {
						if rng.IntN(2) == 0 {
							x[i] = math.Float32frombits(rng.Uint32())
							if x[i] != x[i] {
								x[i] = float32(math.NaN())
							}
						}
					}
					a, b := make([]uint16, n), make([]uint16, n)
					Narrow(dt, a, x, by)
					plainNarrow(dt == npu.BF16, b, x, by)
					for i := range a {
						if a[i] != b[i] {
							t.Fatalf("%v by %g: %g (%08x) becomes %04x, plain %04x", dt, by, x[i], math.Float32bits(x[i]), a[i], b[i])
						}
					}
					y, z := make([]float32, n), make([]float32, n)
					fa, fb := Widen(dt, y, a, by), plainWiden(dt == npu.BF16, z, b, by)
					if i := sameFloats(y, z); i >= 0 || fa != fb {
						t.Fatalf("%v by %g: element %d, finite %v, plain %v", dt, by, i, fa, fb)
					}
				}
			}
		}
	})
}

// Gradients travel as 8 bits; what rounding loses is added to those of the next step.
func ExampleQuantise() {
	x := make([]float32, 32)
	x[0], x[1] = 127, 0.25 // 0.25 is a quarter of a step
	q, scale, sum := make([]int8, 32), make([]float32, 1), float32(0)
	f := &Feedback{Old: make([]int16, 32), New: make([]int16, 32), OldScale: make([]float32, 1), NewScale: make([]float32, 1), Unit: 1}
	for range 8 {
		Quantise(32, q, scale, x, f)
		sum += float32(q[1]) * scale[0]
		f.Old, f.New, f.OldScale, f.NewScale = f.New, f.Old, f.NewScale, f.OldScale
	}
	fmt.Println(sum, "of", 8*x[1])
	// Output: 2 of 2
}
