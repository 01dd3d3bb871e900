//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// bnShapes: odd and even planes, few and many channels, tails for every vector length, more rows than one piece.
var bnShapes = [][]int{
	{2, 3, 5, 7},
	{3, 16, 1, 1},
	{2, 32, 7, 7},
	{1, 48, 9, 11},
	{4, 17, 3, 3},
	{2, 64, 28, 25},
	{5, 2080, 2, 1},
	{2, 1, 90, 101},
	{2, 24, 5, 9},
	{9, 5},
	{64, 100},
}

func bnCases(r *rand.Rand, each func(x npu.Desc, a npu.Attrs)) {
	for _, s := range bnShapes {
		for _, dt := range []npu.DType{npu.F32, npu.BF16} {
			ls := []npu.Layout{npu.Plain}
			if len(s) == 4 {
				ls = layouts(s[1])
			}
			for _, l := range ls {
				each(in(dt, l, s...), npu.Attrs{"relu": r.IntN(2) == 0, "add": r.IntN(2) == 0, "eps": 1e-4, "momentum": 0.2})
			}
		}
	}
}

func positive(n int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		put(b, i, npu.F32, 0.5+float64(i%7)/4)
	}
	return b
}

func TestBatchNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	bnCases(r, func(x npu.Desc, a npu.Attrs) {
		v := npu.D(npu.F32, x.Shape[1])
		op := npu.Op{Kind: npu.BatchNorm, Attrs: a, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}}
		alias := map[int]int{3: 3, 4: 4}
		if a.Bool("add") {
			op.In = append(op.In, x)
			if r.IntN(2) == 0 {
				alias[0] = 5
			}
		}
		twin{op: op, in: [][]byte{nil, nil, nil, nil, positive(x.Shape[1])}, alias: alias}.run(t, r)

		ai := a.Clone()
		delete(ai, "momentum")
		inf := npu.Op{Kind: npu.BatchNormInfer, Attrs: ai, In: op.In, Out: op.Out[:1]}
		twin{op: inf, in: [][]byte{nil, nil, nil, nil, positive(x.Shape[1])}, alias: map[int]int{0: 0}}.run(t, r)
	})
}

// TestBatchNormFarFromZero: mean 1000, spread 1. A sum of squares without a shift has lost the variance here entirely (1000² · 2^-24 = 0.06 for each of
// 12600 terms); float32 input itself carries 6e-5.
func TestBatchNormFarFromZero(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for _, l := range layouts(32) {
		x, v := in(npu.F32, l, 7, 32, 45, 40), npu.D(npu.F32, 32)
		data := random(r, x)
		for i := range int(x.Shape.Elems()) {
			put(data, i, npu.F32, 1000+get(data, i, npu.F32))
		}
		op := npu.Op{Kind: npu.BatchNorm, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}}
		twin{op: op, in: [][]byte{data, nil, nil, nil, positive(32)}, tol: 1e-4}.run(t, r)
	}
}

func TestBatchNormBwd(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 3 {
		bnCases(r, func(x npu.Desc, a npu.Attrs) { bnBwd(t, r, x, a) })
	}
}

func bnBwd(t *testing.T, r *rand.Rand, x npu.Desc, a npu.Attrs) {
	v := npu.D(npu.F32, x.Shape[1])
	a["sum"] = r.IntN(2) == 0
	op := npu.Op{Kind: npu.BatchNormBwd, Attrs: a, In: []npu.Desc{x, x, v, v, v, v}, Out: []npu.Desc{x, v, v}}
	if a.Bool("relu") {
		op.In = append(op.In, x)
	}
	places := []int{0}
	if a.Bool("sum") {
		places = append(places, len(op.In))
		op.In = append(op.In, x)
	}
	alias := map[int]int{}
	if a.Bool("add") {
		op.Out = append(op.Out, x)
		if r.IntN(2) == 0 {
			alias[3] = places[len(places)-1]
			places = places[:len(places)-1]
		}
	}
	if len(places) > 0 && r.IntN(2) == 0 {
		alias[0] = places[0]
	}
	twin{op: op, in: [][]byte{nil, nil, nil, nil, nil, positive(x.Shape[1])}, alias: alias}.run(t, r)
}

// TestBatchNormPast: outputs that are written past the caches have the same bits, in every build, order and type, with one thread and two.
func TestBatchNormPast(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	defer kern.Past(kern.Past(0))
	bnCases(r, func(x npu.Desc, a npu.Attrs) {
		v := npu.D(npu.F32, x.Shape[1])
		op := npu.Op{Kind: npu.BatchNorm, Attrs: a, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}}
		args := [][]byte{random(r, x), random(r, v), random(r, v), random(r, v), positive(x.Shape[1])}
		if a.Bool("add") {
			op.In, args = append(op.In, x), append(args, random(r, x))
		}
		for isa := range kern.ISAs() {
			c, _ := kern.PrepareFor(op, isa)
			kern.Past(1 << 40)
			want := twin{op: op}.exec(t, c, args, 1)
			kern.Past(0)
			for threads := 1; threads <= 2; threads++ {
				for i, got := range (twin{op: op}).exec(t, c, args, threads) {
					if !bytes.Equal(want[i], got) {
						t.Fatalf("%s: output %d differs with %d threads", op, i, threads)
					}
				}
			}
		}
	})
}

// TestOwnY: with the promise own_y the mask is taken from x, without reading y; the result must be that of the mask from y to the last bit, in every
// build of the kernels.
func TestOwnY(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	bnCases(r, func(x npu.Desc, _ npu.Attrs) {
		v := npu.D(npu.F32, x.Shape[1])
		fwd := npu.Op{Kind: npu.BatchNorm, Attrs: npu.Attrs{"relu": true}, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}}
		bwd := npu.Op{
			Kind:  npu.BatchNormBwd,
			Attrs: npu.Attrs{"relu": true, "sum": r.IntN(2) == 0},
			In:    []npu.Desc{x, x, v, v, v, v, x},
			Out:   []npu.Desc{x, v, v},
		}
		if bwd.Attrs.Bool("sum") {
			bwd.In = append(bwd.In, x)
		}
		own := bwd.Clone()
		own.Attrs = bwd.Attrs.Clone()
		own.Attrs["own_y"] = true
		args := [][]byte{random(r, x), random(r, v), random(r, v), random(r, v), positive(x.Shape[1])}
		for isa := range kern.ISAs() {
			f, _ := kern.PrepareFor(fwd, isa)
			y := twin{op: fwd}.exec(t, f, args, 1)
			in := [][]byte{random(r, x), args[0], args[1], args[2], y[1], y[2], y[0], random(r, x)}[:len(bwd.In)]
			a, _ := kern.PrepareFor(bwd, isa)
			b, _ := kern.PrepareFor(own, isa)
			want := twin{op: bwd}.exec(t, a, in, 1)
			clear(in[6]) // nobody looks
			got := twin{op: own}.exec(t, b, in, 2)
			for i := range want {
				if !bytes.Equal(want[i], got[i]) {
					t.Fatalf("%s: output %d differs from the mask by y", own, i)
				}
			}
		}
	})
}
