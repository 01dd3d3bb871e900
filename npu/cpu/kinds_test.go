//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// positive fills with values that are variances.
func positive(seed uint64) func(int) float64 {
	r := rand.New(rand.NewPCG(seed, 77))
	return func(int) float64 { return 0.1 + r.Float64() }
}

func constant(v ...float64) func(int) float64 { return func(i int) float64 { return v[i%len(v)] } }

// batchNormCases are all variants of the three kinds on x.
func batchNormCases(x npu.Desc) []opCase {
	c := x.Shape[1]
	v := npu.D(npu.F32, c)
	per := math.Sqrt(float64(x.Shape.Elems()) / float64(c))
	var list []opCase
	for bits := range 8 {
		relu, add, sum := bits&1 != 0, bits&2 != 0, bits&4 != 0
		a := npu.Attrs{"eps": 1e-5, "momentum": 0.1, "relu": relu, "add": add}
		if !sum {
			fwd := npu.Op{Kind: npu.BatchNorm, Attrs: a, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}}
			inf := npu.Op{Kind: npu.BatchNormInfer, Attrs: a, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x}}
			if add {
				fwd.In, inf.In = append(fwd.In, x), append(inf.In, x)
			}
			list = append(list, opCase{op: fwd, fill: map[int]func(int) float64{4: positive(1)}, alias: map[int]int{3: 3, 4: 4}},
				opCase{op: inf, fill: map[int]func(int) float64{4: positive(1)}})
		}
		b := a.Clone()
		b["sum"] = sum
		bwd := npu.Op{Kind: npu.BatchNormBwd, Attrs: b, In: []npu.Desc{x, x, v, v, v, v}, Out: []npu.Desc{x, v, v}}
		if relu {
			bwd.In = append(bwd.In, x)
		}
		if sum {
			bwd.In = append(bwd.In, x)
		}
		if add {
			bwd.Out = append(bwd.Out, x)
		}
		list = append(list, opCase{op: bwd, fill: map[int]func(int) float64{5: positive(2)}, scale: 4 * per})
	}
	return list
}

// elementCases are the kinds that work element by element, on x.
func elementCases(x npu.Desc) []opCase {
	one, two := []npu.Desc{x}, []npu.Desc{x, x}
	list := []opCase{
		{op: npu.Op{Kind: npu.Relu, In: one, Out: one}, alias: map[int]int{0: 0}},
		{op: npu.Op{Kind: npu.ReluBwd, In: two, Out: one}, alias: map[int]int{0: 0}},
		{
			op:   npu.Op{Kind: npu.Dropout, Attrs: npu.Attrs{"p": 0.3, "id": 2}, In: []npu.Desc{x, npu.D(npu.I64)}, Out: one},
			fill: map[int]func(int) float64{1: constant(42)},
		},
	}
	for _, fn := range []string{"neg", "exp", "square", "abs", "tanh", "sigmoid", "silu", "gelu", "sign", "affine"} {
		list = append(list, opCase{op: npu.Op{Kind: npu.Unary, Attrs: npu.Attrs{"fn": fn, "alpha": 2.0, "beta": -0.5}, In: one, Out: one}})
	}
	for _, fn := range []string{"log", "sqrt", "rsqrt", "recip"} {
		list = append(
			list,
			opCase{op: npu.Op{Kind: npu.Unary, Attrs: npu.Attrs{"fn": fn}, In: one, Out: one}, fill: map[int]func(int) float64{0: positive(4)}},
		)
	}
	for _, fn := range []string{"add", "sub", "mul", "div", "max", "min", "gt", "ge", "eq"} {
		c := opCase{op: npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": fn, "relu": fn == "add"}, In: two, Out: one}, alias: map[int]int{0: 0}}
		if fn == "div" {
			c.fill = map[int]func(int) float64{1: positive(5)}
		}
		list = append(list, c)
	}
	return list
}

// moveCases are reductions, broadcasts and the kinds that move elements.
func moveCases(t npu.DType) []opCase {
	x := npu.D(t, 2, 16, 5, 6)
	list := []opCase{
		{op: npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "mul"}, In: []npu.Desc{x, npu.D(t, 16, 1, 1)}, Out: []npu.Desc{x}}},
		{op: npu.Op{Kind: npu.BroadcastTo, Attrs: npu.Attrs{"shape": []int{2, 16, 5, 6}}, In: []npu.Desc{npu.D(t, 16, 1, 6)}, Out: []npu.Desc{x}}},
		{op: npu.Op{Kind: npu.GlobalAvgPool, In: []npu.Desc{x.With(npu.Any)}, Out: []npu.Desc{npu.D(t, 2, 16)}}},
		{
			op: npu.Op{
				Kind:  npu.GlobalAvgPoolBwd,
				Attrs: npu.Attrs{"x_shape": []int{2, 16, 5, 6}},
				In:    []npu.Desc{npu.D(t, 2, 16)},
				Out:   []npu.Desc{x.With(npu.Any)},
			},
		},
		{op: npu.Op{Kind: npu.Transpose, Attrs: npu.Attrs{"perm": []int{3, 0, 2, 1}}, In: []npu.Desc{x}, Out: []npu.Desc{npu.D(t, 6, 2, 5, 16)}}},
		{op: npu.Op{Kind: npu.Concat, Attrs: npu.Attrs{"axis": 1}, In: []npu.Desc{x, npu.D(t, 2, 3, 5, 6)}, Out: []npu.Desc{npu.D(t, 2, 19, 5, 6)}}},
		{
			op: npu.Op{
				Kind:  npu.Slice,
				Attrs: npu.Attrs{"begin": []int{0, 2, 1, 0}, "end": []int{2, 5, 4, 6}},
				In:    []npu.Desc{x},
				Out:   []npu.Desc{npu.D(t, 2, 3, 3, 6)},
			},
		},
		{
			op: npu.Op{
				Kind:  npu.Pad,
				Attrs: npu.Attrs{"before": []int{0, 1, 0, 2}, "after": []int{0, 0, 3, 0}},
				In:    []npu.Desc{x},
				Out:   []npu.Desc{npu.D(t, 2, 17, 8, 8)},
			},
		},
		{op: npu.Op{Kind: npu.Reshape, In: []npu.Desc{x}, Out: []npu.Desc{npu.D(t, 2, 480)}}},
		{op: npu.Op{Kind: npu.Fill, Attrs: npu.Attrs{"value": 1.5}, Out: []npu.Desc{x}}},
	}
	for _, fn := range []string{"sum", "mean", "max"} {
		list = append(
			list,
			opCase{
				op:    npu.Op{Kind: npu.Reduce, Attrs: npu.Attrs{"fn": fn, "axes": []int{0, 2, 3}}, In: []npu.Desc{x}, Out: []npu.Desc{npu.D(t, 16)}},
				scale: 8,
			},
			opCase{
				op: npu.Op{
					Kind:  npu.Reduce,
					Attrs: npu.Attrs{"fn": fn, "axes": []int{1}, "keep": true},
					In:    []npu.Desc{x},
					Out:   []npu.Desc{npu.D(t, 2, 1, 5, 6)},
				},
				scale: 4,
			},
		)
	}
	return list
}

// lossCases are losses and counts of n rows and c classes.
func lossCases(t npu.DType) []opCase {
	const n, c = 7, 33
	x, labels, row, scalar := npu.D(t, n, c), npu.D(npu.I32, n), npu.D(npu.F32, n), npu.D(npu.F32)
	lab := constant(0, 32, 5, -100, 7, 7, 1)
	a := npu.Attrs{"smoothing": 0.1, "ignore_index": -100}
	return []opCase{
		{
			op:    npu.Op{Kind: npu.CrossEntropy, Attrs: a, In: []npu.Desc{x, labels}, Out: []npu.Desc{scalar, scalar, row}},
			fill:  map[int]func(int) float64{1: lab},
			scale: 20,
		},
		{
			op:    npu.Op{Kind: npu.CrossEntropyBwd, Attrs: a, In: []npu.Desc{x, labels, row, scalar}, Out: []npu.Desc{x}},
			fill:  map[int]func(int) float64{1: lab, 2: constant(4), 3: constant(0.5)},
			alias: map[int]int{0: 0},
		},
		{
			op:   npu.Op{Kind: npu.TopK, Attrs: npu.Attrs{"k": 5, "ignore_index": -100}, In: []npu.Desc{x, labels}, Out: []npu.Desc{scalar}},
			fill: map[int]func(int) float64{1: lab},
		},
	}
}

// flatCases are the optimizer kinds.
func flatCases() []opCase {
	const n = 1003
	v, h, d := npu.D(npu.F32, n), npu.D(npu.F32, 8), npu.D(npu.F64, 2)
	var list []opCase
	for bits := range 4 {
		a := npu.Attrs{"nesterov": bits&1 != 0, "decoupled": bits&2 != 0, "has_momentum": true}
		list = append(list, opCase{op: npu.Op{Kind: npu.SGD, Attrs: a, In: []npu.Desc{h, v, v, v}, Out: []npu.Desc{v, v}}, alias: map[int]int{0: 1, 1: 3},
			fill: map[int]func(int) float64{0: constant(0.1, 0.5, 0.9, 1e-2, 0.1, 0, 0, 0)}})
	}
	for _, coupled := range []bool{false, true} {
		list = append(
			list,
			opCase{
				op:    npu.Op{Kind: npu.AdamW, Attrs: npu.Attrs{"coupled": coupled}, In: []npu.Desc{h, v, v, v, v}, Out: []npu.Desc{v, v, v}},
				alias: map[int]int{0: 1, 1: 3, 2: 4},
				fill:  map[int]func(int) float64{0: constant(1e-3, 0.5, 0.9, 0.999, 1e-8, 1e-2, 0.19, 0.001999), 4: positive(8)},
			},
		)
	}
	for _, skip := range []bool{false, true} {
		list = append(
			list,
			opCase{
				op:    npu.Op{Kind: npu.LARS, Attrs: npu.Attrs{"skip": skip}, In: []npu.Desc{h, v, v, v, d, d}, Out: []npu.Desc{v, v}},
				alias: map[int]int{0: 1, 1: 3},
				fill:  map[int]func(int) float64{0: constant(0.1, 0.5, 0.9, 1e-4, 1e-2, 1e-9, 0, 0), 4: constant(1000, 0), 5: constant(900, 0)},
			},
		)
	}
	return append(
		list,
		opCase{
			op:    npu.Op{Kind: npu.Scale, In: []npu.Desc{npu.D(npu.F32, 1), v}, Out: []npu.Desc{v}},
			alias: map[int]int{0: 1},
			fill:  map[int]func(int) float64{0: constant(0.25)},
		},
	)
}

// All kinds work, in the layouts that the device chooses and in those that come in.
func TestKinds(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		var list []opCase
		for _, dt := range floatTypes {
			for _, l := range []npu.Layout{npu.Any, npu.Plain, NHWC, NChw16c} {
				x := npu.D(dt, 2, 32, 5, 7).With(l)
				list = append(list, batchNormCases(x)...)
				list = append(list, elementCases(x)...)
			}
			list = append(list, batchNormCases(npu.D(dt, 9, 20))...)
			list = append(list, elementCases(npu.D(dt, 3, 17))...)
			list = append(list, batchNormCases(npu.D(dt, 3, 20, 4, 4).With(npu.Any))...) // 16 does not divide the channels
			list = append(list, moveCases(dt)...)
			list = append(list, lossCases(dt)...)
		}
		list = append(list, flatCases()...)
		impls := map[string]int{}
		for i, c := range list {
			c.check(t, g, uint64(i))
			if t.Failed() {
				t.Fatalf("case %d", i)
			}
			op, _ := d.Choose(c.op)
			if k, err := d.Compile(op); err == nil {
				impls[fmt.Sprintf("%s by %.3s", op.Kind, k.Impl())]++
			}
		}
		t.Log(impls)
	})
}

// SumSq adds to what is there.
func TestSumSq(t *testing.T) {
	g := newRig(t, testDevice(t))
	op := must(g.d.Choose(npu.Op{Kind: npu.SumSq, In: []npu.Desc{npu.D(npu.F32, 1000)}, Out: []npu.Desc{npu.D(npu.F64, 2)}}))(t)
	p, s := g.alloc(4000), g.alloc(16)
	for i := range 1000 {
		put(p.Buf.Host(), i, npu.F32, 2)
	}
	put(p.Buf.Host(), 7, npu.F32, math.Inf(1))
	put(s.Buf.Host(), 0, npu.F64, 10)
	g.launch(op, []npu.Ptr{p, s})
	g.sync()
	if sum, bad := get(s.Buf.Host(), 0, npu.F64), get(s.Buf.Host(), 1, npu.F64); bad != 1 || !(sum >= 10+999*4 || math.IsInf(sum, 1)) {
		t.Errorf("sum %g, %g elements that are not finite", sum, bad)
	}
}

// A batch normalisation keeps the layout of its input, whatever the policy is.
func TestLayoutsAreKept(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		for _, l := range []npu.Layout{NHWC, NChw16c} {
			for _, c := range append(batchNormCases(npu.D(npu.F32, 2, 32, 4, 4).With(l)), elementCases(npu.D(npu.BF16, 2, 32, 4, 4).With(l))[:2]...) {
				op := c.op.Clone()
				for i := range op.Out {
					op.Out[i].Layout = npu.Any
				}
				op = must(d.Choose(op))(t)
				if op.In[0].Layout != l || op.Out[0].Layout != l {
					t.Errorf("%s is not kept: %s", l, op)
				}
			}
		}
	})
}
