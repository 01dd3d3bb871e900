package ref_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// gradCase is a forward op and the backward op of one of its inputs. All floats are F64, so the check is exact to about 1e-8.
type gradCase struct {
	name   string
	fwd    npu.Op
	bwd    npu.Op
	by     []int          // inputs of fwd that bwd differentiates by
	gets   []int          // outputs of bwd with those gradients
	source []string       // inputs of bwd: in0, in1 … of fwd, out0 …, d (gradient of out0)
	ints   map[int][]byte // inputs of integer type
}

func d64(shape ...int) npu.Desc { return npu.D(npu.F64, shape...) }

func gradCases() []gradCase {
	var cs []gradCase
	conv := func(x, w npu.Desc, oh, ow int, a npu.Attrs) {
		y := d64(x.Shape[0], w.Shape[0], oh, ow)
		fwd := npu.Op{Kind: npu.Conv2D, Attrs: a, In: []npu.Desc{x, w}, Out: []npu.Desc{y}}
		withBias := a.Bool("bias")
		data, weights := a.Clone(), a.Clone()
		data["x_shape"], weights["w_shape"] = []int(x.Shape), []int(w.Shape)
		outs, by, gets := []npu.Desc{w}, []int{1}, []int{0}
		if withBias {
			fwd.In = append(fwd.In, d64(w.Shape[0]))
			outs, by, gets = append(outs, d64(w.Shape[0])), []int{1, 2}, []int{0, 1}
		}
		cs = append(
			cs,
			gradCase{
				name:   "data",
				fwd:    fwd,
				bwd:    npu.Op{Kind: npu.Conv2DBwdData, Attrs: data, In: []npu.Desc{y, w}, Out: []npu.Desc{x}},
				by:     []int{0},
				gets:   []int{0},
				source: []string{"d", "in1"},
			},
			gradCase{
				name:   "weights",
				fwd:    fwd,
				bwd:    npu.Op{Kind: npu.Conv2DBwdWeights, Attrs: weights, In: []npu.Desc{x, y}, Out: outs},
				by:     by,
				gets:   gets,
				source: []string{"in0", "d"},
			},
		)
	}
	conv(d64(2, 4, 5, 6), d64(6, 2, 3, 2), 3, 4, npu.Attrs{"groups": 2, "stride": []int{2, 2}, "pad": []int{1, 1, 1, 1}, "bias": true})
	conv(d64(1, 3, 7, 5), d64(2, 3, 3, 3), 3, 1, npu.Attrs{"dilation": []int{2, 2}})

	same := func(fwd, bwd string, s ...int) {
		x := d64(s...)
		cs = append(
			cs,
			gradCase{
				name:   fwd,
				fwd:    npu.Op{Kind: fwd, In: []npu.Desc{x}, Out: []npu.Desc{x}},
				bwd:    npu.Op{Kind: bwd, In: []npu.Desc{x, x}, Out: []npu.Desc{x}},
				by:     []int{0},
				gets:   []int{0},
				source: []string{"d", "out0"},
			},
		)
	}
	same(npu.Relu, npu.ReluBwd, 3, 7)
	same(npu.Softmax, npu.SoftmaxBwd, 2, 3, 5)
	same(npu.LogSoftmax, npu.LogSoftmaxBwd, 4, 5)

	pool := func(fwd, bwd string, a npu.Attrs, x, y npu.Desc) {
		ab := a.Clone()
		ab["x_shape"] = []int(x.Shape)
		c := gradCase{
			name:   fwd,
			fwd:    npu.Op{Kind: fwd, Attrs: a, In: []npu.Desc{x}, Out: []npu.Desc{y}},
			bwd:    npu.Op{Kind: bwd, Attrs: ab, In: []npu.Desc{y}, Out: []npu.Desc{x}},
			by:     []int{0},
			gets:   []int{0},
			source: []string{"d"},
		}
		if fwd == npu.MaxPool {
			idx := npu.Desc{Shape: y.Shape, DType: npu.I32}
			c.fwd.Out, c.bwd.In, c.source = append(c.fwd.Out, idx), append(c.bwd.In, idx), append(c.source, "out1")
		}
		cs = append(cs, c)
	}
	pool(npu.MaxPool, npu.MaxPoolBwd, npu.Attrs{"kernel": []int{3, 2}, "stride": []int{2, 1}, "pad": []int{1, 0, 1, 1}}, d64(2, 2, 5, 4), d64(2, 2, 3, 4))
	pool(npu.AvgPool, npu.AvgPoolBwd, npu.Attrs{"kernel": []int{3, 2}, "stride": []int{2, 1}, "pad": []int{1, 0, 1, 1}}, d64(2, 2, 5, 4), d64(2, 2, 3, 4))
	pool(npu.AvgPool, npu.AvgPoolBwd, npu.Attrs{"kernel": []int{2, 2}, "pad": []int{1, 0, 0, 1}, "include_pad": true}, d64(1, 2, 3, 3), d64(1, 2, 3, 3))
	pool(npu.GlobalAvgPool, npu.GlobalAvgPoolBwd, npu.Attrs{}, d64(2, 3, 2, 3), d64(2, 3))

	for _, ce := range []npu.Attrs{{}, {"smoothing": 0.2, "ignore_index": 1}} {
		x, l := d64(4, 3), npu.D(npu.I32, 4)
		cs = append(cs, gradCase{name: "ce", fwd: npu.Op{Kind: npu.CrossEntropy, Attrs: ce, In: []npu.Desc{x, l}, Out: []npu.Desc{d64(), d64(), d64(4)}},
			bwd: npu.Op{
				Kind:  npu.CrossEntropyBwd,
				Attrs: ce,
				In:    []npu.Desc{x, l, d64(4), d64()},
				Out:   []npu.Desc{x},
			}, by: []int{0}, gets: []int{0}, source: []string{"in0", "in1", "out2", "d"}, ints: map[int][]byte{1: i32(2, 0, 1, 0)}})
	}
	for _, relu := range []bool{false, true} {
		for _, add := range []bool{false, true} {
			for _, s := range [][]int{{4, 3}, {3, 2, 2, 3}} {
				cs = append(cs, batchNormCase(relu, add, d64(s...)))
			}
		}
	}
	return append(cs, languageGradCases()...)
}

func batchNormCase(relu, add bool, x npu.Desc) gradCase {
	v := d64(x.Shape[1])
	a := npu.Attrs{"relu": relu, "add": add, "eps": 1e-3}
	c := gradCase{name: fmt.Sprint("relu=", relu, " add=", add, " "), by: []int{0, 1, 2}, gets: []int{0, 1, 2},
		fwd:    npu.Op{Kind: npu.BatchNorm, Attrs: a, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}},
		bwd:    npu.Op{Kind: npu.BatchNormBwd, Attrs: a, In: []npu.Desc{x, x, v, v, v, v}, Out: []npu.Desc{x, v, v}},
		source: []string{"d", "in0", "in1", "in2", "out1", "out2"}}
	if relu {
		c.bwd.In, c.source = append(c.bwd.In, x), append(c.source, "out0")
	}
	if add {
		c.fwd.In, c.bwd.Out = append(c.fwd.In, x), append(c.bwd.Out, x)
		c.by, c.gets = append(c.by, 5), append(c.gets, 3)
	}
	return c
}

// TestGradients compares every backward kind with central differences of its forward, (f(x+h) - f(x-h)) / 2h with h = 1e-5 in float64: the
// method's error is about h² = 1e-10 of the third derivative, rounding 1e-16/h = 1e-11.
func TestGradients(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range gradCases() {
		seen[c.bwd.Kind] = true
		t.Run(c.bwd.Kind+"/"+c.name, func(t *testing.T) { checkGradient(t, c) })
	}
	for _, k := range kindsOfContract(t) {
		if len(k) > 4 && (k[len(k)-4:] == "_bwd" || k == npu.Conv2DBwdData || k == npu.Conv2DBwdWeights || k == npu.LinearCrossEntropyGrad) && !seen[k] {
			t.Errorf("%s: no gradient check", k)
		}
	}
}

func checkGradient(t *testing.T, c gradCase) {
	r := rand.New(rand.NewPCG(1, 2))
	in := make([][]byte, len(c.fwd.In))
	for i, d := range c.fwd.In {
		v := make([]float64, d.Shape.Elems())
		for j := range v {
			v[j] = r.NormFloat64()
		}
		in[i] = f64s(v)
	}
	for i, raw := range c.ints {
		in[i] = raw
	}
	dy := make([]float64, c.fwd.Out[0].Shape.Elems())
	for j := range dy {
		dy[j] = r.NormFloat64()
	}
	forward := func() (out [][]byte, f float64) {
		out = outputs(c.fwd)
		if err := ref.Run(c.fwd, append(append([][]byte{}, in...), out...)); err != nil {
			t.Fatal(err)
		}
		for i, v := range getF64(out[0]) {
			f += v * dy[i]
		}
		return out, f
	}
	out, _ := forward()
	var args [][]byte
	for _, s := range c.source {
		switch {
		case s == "d":
			args = append(args, f64s(dy))
		case s[0] == 'i':
			args = append(args, in[s[2]-'0'])
		default:
			args = append(args, out[s[3]-'0'])
		}
	}
	got := outputs(c.bwd)
	if err := ref.Run(c.bwd, append(args, got...)); err != nil {
		t.Fatal(err)
	}
	const h = 1e-5
	for n, i := range c.by {
		grad, orig := getF64(got[c.gets[n]]), getF64(in[i])
		for j := range orig {
			diff := 0.0
			for _, sign := range []float64{1, -1} {
				moved := append([]float64{}, orig...)
				moved[j] += sign * h
				in[i] = f64s(moved)
				_, f := forward()
				diff += sign * f / (2 * h)
			}
			if math.Abs(diff-grad[j]) > 1e-7*max(1, math.Abs(diff)) {
				t.Fatalf("input %d element %d: gradient %v, central difference %v", i, j, grad[j], diff)
			}
		}
		in[i] = f64s(orig)
	}
}

func outputs(op npu.Op) [][]byte {
	var out [][]byte
	for _, d := range op.Out {
		out = append(out, make([]byte, d.PlainBytes()))
	}
	return out
}
