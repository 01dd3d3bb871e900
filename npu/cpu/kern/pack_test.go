//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// place is where element i is in memory.
func place(o kern.Order, at []int64) int64 {
	rest, block, p := slices.Clone(at), int64(1), int64(0)
	for k := len(o.Blocks) - 1; k >= 0; k-- {
		d := o.Index[k]
		p += rest[d] % o.Blocks[k] * block
		rest[d] /= o.Blocks[k]
		block *= o.Blocks[k]
	}
	for d, i := range rest {
		p += i * o.Strides[d]
	}
	return p
}

// packCase is an order of 4-d weights in blocks: outer lists the dimensions, outermost first.
type packCase struct {
	dims          []int64
	outer         []int
	blocks, index []int64
	source        []int // dimensions of x, outermost first
}

func (c packCase) orders() (from, to kern.Order, size int64) {
	from = kern.Order{Dims: c.dims, Padded: c.dims, Strides: make([]int64, len(c.dims))}
	n := int64(1)
	for _, d := range slices.Backward(c.source) {
		from.Strides[d] = n
		n *= c.dims[d]
	}
	by := make([]int64, len(c.dims))
	for d := range by {
		by[d] = 1
	}
	size = 1
	for k, b := range c.blocks {
		by[c.index[k]] *= b
		size *= b
	}
	to = kern.Order{Dims: c.dims, Padded: make([]int64, len(c.dims)), Strides: make([]int64, len(c.dims)), Blocks: c.blocks, Index: c.index}
	for _, d := range slices.Backward(c.outer) {
		to.Strides[d] = size
		to.Padded[d] = (c.dims[d] + by[d] - 1) / by[d] * by[d]
		size *= to.Padded[d] / by[d]
	}
	return from, to, size
}

// Pack writes every element of the order, with zeros between the last element of a dimension and the end of its block, and nothing else. The cases are those
// of oneDNN on processors with and without AMX.
func TestPack(t *testing.T) {
	plain, reversed := []int{0, 1, 2, 3}, []int{1, 0, 2, 3}
	cases := []packCase{
		{[]int64{128, 64, 1, 1}, plain, []int64{64, 2}, []int64{0, 1}, plain},                                 // ABcd64a2b
		{[]int64{64, 96, 1, 1}, plain, []int64{48, 2}, []int64{0, 1}, plain},                                  // ABcd48a2b: 64 of 96
		{[]int64{96, 80, 1, 1}, reversed, []int64{16, 64, 2}, []int64{0, 1, 0}, plain},                        // BA16a64b2a: 80 of 128
		{[]int64{128, 64, 1, 1}, plain, []int64{16, 64, 2}, []int64{1, 0, 1}, plain},                          // AB16b64a2b
		{[]int64{32, 64, 3, 3}, []int{0, 2, 3, 1}, []int64{16, 2}, []int64{0, 1}, []int{0, 2, 3, 1}},          // AcdB16a2b from channels innermost
		{[]int64{32, 48, 3, 3}, []int{1, 2, 3, 0}, []int64{16, 2}, []int64{1, 0}, []int{0, 2, 3, 1}},          // BcdA16b2a from the same
		{[]int64{4, 32, 64, 3, 3}, []int{0, 1, 2, 3, 4}, []int64{16, 2}, []int64{1, 2}, []int{0, 1, 3, 4, 2}}, // groups
	}
	for _, isa := range []string{"", "avx2", "base"} {
		if isa != "" {
			t.Setenv(kern.EnvISA, isa)
		}
		for i, c := range cases {
			from, to, size := c.orders()
			call := kern.Pack(from, to)
			if call == nil {
				t.Fatalf("no kernel for case %d", i)
			}
			m := newMemory(t, 1<<20)
			elems := npu.Shape{1}
			for _, d := range c.dims {
				elems[0] *= int(d)
			}
			x, y := m.take(int64(elems[0])*4), m.take(size*2)
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for j := range elems[0] {
				put(x, j, npu.F32, r.NormFloat64())
			}
			for j, v := range []float64{math.NaN(), math.Inf(-1), 0, math.MaxFloat32, 1.00390625, 1.01171875} { // the last two are ties
				put(x, 7*j, npu.F32, v)
			}
			want := make([]byte, size*2)
			for j := range elems[0] {
				at, rest := make([]int64, len(c.dims)), int64(j)
				for d := range slices.Backward(c.dims) {
					at[d] = rest % c.dims[d]
					rest /= c.dims[d]
				}
				put(want, int(place(to, at)), npu.BF16, get(x, int(place(from, at)), npu.F32))
			}
			for threads := 1; threads <= 2; threads++ {
				clear(y)
				for j := range y {
					y[j] = 0x55
				}
				cmd, err := call.Bind([]unsafe.Pointer{ptr(x), ptr(y)}, nil, threads)
				if err == nil {
					err = cmd.Run(threads)
				}
				if err != nil {
					t.Fatal(err)
				}
				for j := range int(size) {
					a, b := get(y, j, npu.BF16), get(want, j, npu.BF16)
					if a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
						t.Fatalf("%q, case %d, element %d: %g, want %g", isa, i, j, a, b)
					}
				}
			}
			m.check(t, fmt.Sprintf("case %d", i))
			m.free()
		}
	}
}

// Orders that vectors do not fill, or that are not in pairs, are left to others.
func TestPackRefuses(t *testing.T) {
	plain := []int{0, 1, 2, 3}
	for _, c := range []packCase{
		{[]int64{60, 64, 1, 1}, plain, []int64{64, 2}, []int64{0, 1}, plain},
		{[]int64{64, 30, 1, 1}, plain, []int64{64, 2}, []int64{0, 1}, plain},
		{[]int64{64, 64, 1, 1}, plain, []int64{16, 16}, []int64{1, 0}, plain},
		{[]int64{64, 64, 1, 1}, plain, []int64{16}, []int64{0}, plain},
		{[]int64{64, 64, 3, 3}, plain, []int64{64, 2}, []int64{0, 1}, plain}, // neither is adjacent
		{[]int64{65, 64, 1, 1}, plain, []int64{16, 64, 2}, []int64{0, 1, 0}, plain},
	} {
		from, to, _ := c.orders()
		if kern.Pack(from, to) != nil {
			t.Error(fmt.Sprint("a kernel for ", c))
		}
	}
}
