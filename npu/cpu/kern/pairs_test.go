//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
	"github.com/gotrain/gotrain/npu/ref"
)

// Every build has the sums of float64 by the definition, whatever the threads, and writes nothing beside them. Factors are small whole numbers, so sums are
// exact in any order.
func TestPairs(t *testing.T) {
	nhwc := func(t npu.DType, s ...int) npu.Desc { return npu.D(t, s...).With(kern.NHWC) }
	for _, p := range []kern.Pairs{
		{X: nhwc(npu.BF16, 3, 64, 5, 5), DY: nhwc(npu.BF16, 3, 32, 5, 5), DW: npu.D(npu.F32, 32, 64, 1, 1), Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}},
		{X: nhwc(npu.BF16, 2, 288, 13, 16), DY: nhwc(npu.BF16, 2, 32, 13, 16), DW: npu.D(npu.F32, 32, 288, 1, 1), Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}},
		{X: nhwc(npu.BF16, 1, 32, 7, 8), DY: nhwc(npu.BF16, 1, 288, 4, 4), DW: npu.D(npu.F32, 288, 32, 3, 3), Stride: [2]int{2, 2}, Dilation: [2]int{1, 1},
			Pad: [2]int{1, 1}},
		{X: nhwc(npu.BF16, 2, 32, 9, 8), DY: nhwc(npu.BF16, 2, 32, 6, 7), DW: npu.D(npu.F32, 32, 32, 2, 2), Stride: [2]int{1, 1}, Dilation: [2]int{3, 1}},
	} {
		r := rand.New(rand.NewPCG(3, 4))
		x, dy := wholes(r, int(p.X.Shape.Elems())), wholes(r, int(p.DY.Shape.Elems()))
		want := pairsByDefinition(p, x, dy)
		for isa, name := range kern.ISAs() {
			for _, threads := range []int{1, 3} {
				p.Threads = threads
				c := p.CallFor(isa)
				m := newMemory(t, 16<<20)
				a, b, dw, ws := m.take(int64(2*len(x))), m.take(int64(2*len(dy))), m.take(int64(4*len(want))), m.take(c.Workspace())
				putBF16(a, x)
				putBF16(b, dy)
				for i := range ws {
					ws[i] = 0xff // a NaN
				}
				cmd, err := c.Bind([]unsafe.Pointer{unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&dw[0])}, unsafe.Pointer(&ws[0]), 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Run(threads); err != nil {
					t.Fatal(err)
				}
				m.check(t, fmt.Sprintf("%s, %s", p.DW, name))
				got := unsafe.Slice((*float32)(unsafe.Pointer(&dw[0])), len(want))
				for i, v := range want {
					if float64(got[i]) != v {
						t.Fatalf("%s, %s, %d threads: element %d is %g instead of %g", p.DW, name, threads, i, got[i], v)
					}
				}
				m.free()
			}
		}
	}
}

// wholes are numbers from -3 to 3.
func wholes(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(r.IntN(7) - 3)
	}
	return v
}

func putBF16(b []byte, v []float64) {
	for i, f := range v {
		h := ref.BF16(float32(f))
		b[2*i], b[2*i+1] = byte(h), byte(h>>8)
	}
}

// pairsByDefinition is dw [Out KH KW In] of x [N H W In] and dy [N OH OW Out].
func pairsByDefinition(p kern.Pairs, x, dy []float64) []float64 {
	xs, ys, k := p.X.Shape, p.DY.Shape, p.DW.Shape
	dw := make([]float64, p.DW.Shape.Elems())
	for q := range ys[0] * ys[2] * ys[3] {
		n, oy, ox := q/(ys[2]*ys[3]), q/ys[3]%ys[2], q%ys[3]
		for tap := range k[2] * k[3] {
			h, w := oy*p.Stride[0]+tap/k[3]*p.Dilation[0]-p.Pad[0], ox*p.Stride[1]+tap%k[3]*p.Dilation[1]-p.Pad[1]
			if h < 0 || h >= xs[2] || w < 0 || w >= xs[3] {
				continue
			}
			for o := range k[0] {
				for c := range k[1] {
					dw[(o*k[2]*k[3]+tap)*k[1]+c] += dy[q*ys[1]+o] * x[((n*xs[2]+h)*xs[3]+w)*xs[1]+c]
				}
			}
		}
	}
	return dw
}
