package optim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu" // so that the traces run on it too
)

// The kernels of the cpu follow those of ref over lengths around the widths of vectors and blocks.
func TestCPUFollowsRef(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 1023, 4096 + 5, 70001} {
		for name, cfg := range variants() {
			var weights, norms [2][]float64
			for i, family := range []string{"ref", "cpu"} {
				b := benchOn(t, family)
				rng := rand.New(rand.NewPCG(uint64(n), 3))
				seg := Segment{Name: "s", Weight: b.alloc(n + 4).At(16), Grad: b.alloc(n), Elems: int64(n)}
				fill := func(p npu.Ptr) {
					x := make([]float64, n)
					for j := range x {
						x[j] = rng.NormFloat64()
					}
					b.put(p, x)
				}
				fill(seg.Weight)
				opt, err := New(b.dev, cfg, []Segment{seg})
				must(t, err)
				for range 3 {
					fill(seg.Grad)
					must(t, opt.Begin(b.s, 0.01, 0.5))
					must(t, opt.Step(b.s))
					must(t, opt.Measure(b.s))
					b.sync()
				}
				weights[i] = b.get(seg.Weight, n)
				norms[i] = []float64{opt.Norm().L2(1)}
				must(t, opt.Close())
			}
			// ref computes in float64 and rounds once an element and step, the cpu in float32: a few 2^-24 of numbers of size 1…5.
			closeTo(t, name+": weights", n, weights, 3e-6)
			closeTo(t, name+": norm", n, norms, 1e-7*math.Sqrt(float64(n))) // both sums are float64; the cpu rounds each square to float32
		}
	}
}

func closeTo(t *testing.T, what string, n int, x [2][]float64, bound float64) {
	t.Helper()
	for i := range x[0] {
		if d := x[0][i] - x[1][i]; !(d <= bound && d >= -bound) {
			t.Fatalf("%s of %d elements: [%d] is %.9g on cpu, %.9g on ref", what, n, i, x[1][i], x[0][i])
		}
	}
}
