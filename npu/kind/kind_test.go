package kind

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func d(t npu.DType, s ...int) npu.Desc { return npu.D(t, s...) }

func f32(s ...int) npu.Desc { return npu.D(npu.F32, s...) }

// shapeCase is a good call and its outputs, badCase one with a mistake and what the error says of it.
type shapeCase struct {
	kind string
	a    npu.Attrs
	in   []npu.Desc
	want []npu.Desc
}

type badCase struct {
	kind string
	a    npu.Attrs
	in   []npu.Desc
	want string
}

// TestShapes has the good cases: outputs by dtype and shape.
func TestShapes(t *testing.T) {
	v := f32(3)
	for _, c := range append(languageShapes, []shapeCase{
		{npu.Conv2D, npu.Attrs{"stride": []int{2, 1}, "pad": []int{1, 0, 2, 1}, "dilation": []int{1, 2}, "groups": 2, "bias": true}, []npu.Desc{f32(1, 4, 6, 5), f32(6, 2, 3, 2), f32(6)}, []npu.Desc{f32(1, 6, 4, 4)}},
		{npu.Conv2D, nil, []npu.Desc{d(npu.BF16, 1, 4, 6, 5), d(npu.BF16, 6, 4, 1, 1)}, []npu.Desc{d(npu.BF16, 1, 6, 6, 5)}},
		{npu.Conv2DBwdData, npu.Attrs{"stride": []int{2, 2}, "x_shape": []int{1, 4, 6, 5}}, []npu.Desc{f32(1, 6, 3, 3), f32(6, 4, 1, 1)}, []npu.Desc{f32(1, 4, 6, 5)}},
		{npu.Conv2DBwdWeights, npu.Attrs{"bias": true, "w_shape": []int{6, 4, 1, 1}}, []npu.Desc{d(npu.BF16, 1, 4, 6, 5), d(npu.BF16, 1, 6, 6, 5)}, []npu.Desc{f32(6, 4, 1, 1), f32(6)}},
		{npu.MatMul, npu.Attrs{"ta": true, "tb": true, "bias": true}, []npu.Desc{f32(2, 4, 3), f32(2, 5, 4), f32(5)}, []npu.Desc{f32(2, 3, 5)}},
		{npu.MatMul, npu.Attrs{"out": "f32"}, []npu.Desc{d(npu.BF16, 3, 4), d(npu.BF16, 4, 5)}, []npu.Desc{f32(3, 5)}},
		{npu.BatchNorm, npu.Attrs{"add": true}, []npu.Desc{d(npu.BF16, 4, 3), v, v, v, v, d(npu.BF16, 4, 3)}, []npu.Desc{d(npu.BF16, 4, 3), v, v, v, v}},
		{npu.BatchNormInfer, nil, []npu.Desc{f32(1, 3, 1, 1), v, v, v, v}, []npu.Desc{f32(1, 3, 1, 1)}},
		{npu.BatchNormBwd, npu.Attrs{"relu": true, "add": true, "sum": true}, []npu.Desc{f32(4, 3), f32(4, 3), v, v, v, v, f32(4, 3), f32(4, 3)}, []npu.Desc{f32(4, 3), v, v, f32(4, 3)}},
		{npu.Binary, npu.Attrs{"fn": "add"}, []npu.Desc{f32(3, 1), f32(2, 1, 4)}, []npu.Desc{f32(2, 3, 4)}},
		{npu.Binary, npu.Attrs{"fn": "add"}, []npu.Desc{f32(), f32()}, []npu.Desc{f32()}},
		{npu.Reduce, npu.Attrs{"fn": "sum", "axes": []int{0, 2}}, []npu.Desc{f32(2, 3, 4)}, []npu.Desc{f32(3)}},
		{npu.Reduce, npu.Attrs{"fn": "max", "axes": []int{1}, "keep": true, "out": "f32"}, []npu.Desc{d(npu.BF16, 2, 3)}, []npu.Desc{f32(2, 1)}},
		{npu.MaxPool, npu.Attrs{"kernel": []int{3, 3}, "stride": []int{2, 2}, "pad": []int{1, 1, 1, 1}}, []npu.Desc{f32(2, 3, 112, 112)}, []npu.Desc{f32(2, 3, 56, 56), d(npu.I32, 2, 3, 56, 56)}},
		{npu.GlobalAvgPoolBwd, npu.Attrs{"x_shape": []int{2, 3, 7, 7}}, []npu.Desc{f32(2, 3)}, []npu.Desc{f32(2, 3, 7, 7)}},
		{npu.CrossEntropy, nil, []npu.Desc{d(npu.BF16, 4, 10), d(npu.I32, 4)}, []npu.Desc{f32(), f32(), f32(4)}},
		{npu.Transpose, npu.Attrs{"perm": []int{2, 0, 1}}, []npu.Desc{d(npu.U8, 2, 3, 4)}, []npu.Desc{d(npu.U8, 4, 2, 3)}},
		{npu.Concat, npu.Attrs{"axis": 1}, []npu.Desc{f32(2, 3), f32(2, 4), f32(2, 1)}, []npu.Desc{f32(2, 8)}},
		{npu.Slice, npu.Attrs{"begin": []int{1, 0}, "end": []int{3, 2}}, []npu.Desc{f32(4, 3)}, []npu.Desc{f32(2, 2)}},
		{npu.Pad, npu.Attrs{"before": []int{1, 0}, "after": []int{0, 2}}, []npu.Desc{f32(4, 3)}, []npu.Desc{f32(5, 5)}},
		{npu.Convert, npu.Attrs{"dtype": "bf16"}, []npu.Desc{d(npu.U8, 2)}, []npu.Desc{d(npu.BF16, 2)}},
		{npu.Fill, npu.Attrs{"shape": []int{}, "dtype": "f64", "value": 1.0}, nil, []npu.Desc{d(npu.F64)}},
	}...) {
		k, err := Lookup(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Infer(c.a, c.in)
		ok := err == nil && len(got) == len(c.want)
		for i := range c.want {
			ok = ok && got[i].Equal(c.want[i])
		}
		if !ok {
			t.Errorf("%s{%s}%v: %v, %v; want %v", c.kind, c.a, c.in, got, err, c.want)
		}
	}
}

// TestBadCalls: each mistake has an error that names it.
func TestBadCalls(t *testing.T) {
	x, w, v := f32(2, 4, 6, 6), f32(6, 4, 3, 3), f32(4)
	for _, c := range append(languageMistakes, []badCase{
		{npu.Conv2D, nil, []npu.Desc{x}, "takes the inputs x, w, got 1"},
		{npu.Conv2D, npu.Attrs{"bias": true}, []npu.Desc{x, w}, "got 2"},
		{npu.Conv2D, nil, []npu.Desc{f32(2, 4, 6), w}, "x has rank 3"},
		{npu.Conv2D, nil, []npu.Desc{f32(2, 3, 6, 6), w}, "3 channels"},
		{npu.Conv2D, npu.Attrs{"groups": 4}, []npu.Desc{x, f32(6, 1, 3, 3)}, "groups 4"},
		{npu.Conv2D, npu.Attrs{"groups": 0}, []npu.Desc{x, w}, "groups 0"},
		{npu.Conv2D, npu.Attrs{"stride": 2}, []npu.Desc{x, w}, "want []int of length 2"},
		{npu.Conv2D, npu.Attrs{"stride": []int{0, 1}}, []npu.Desc{x, w}, "at least 1"},
		{npu.Conv2D, npu.Attrs{"pad": []int{-1, 0, 0, 0}}, []npu.Desc{x, w}, "negative"},
		{npu.Conv2D, npu.Attrs{"padding": []int{1, 1}}, []npu.Desc{x, w}, `no attribute "padding"`},
		{npu.Conv2D, npu.Attrs{"dilation": []int{3, 1}}, []npu.Desc{x, w}, "does not fit"},
		{npu.Conv2D, nil, []npu.Desc{x, d(npu.BF16, 6, 4, 3, 3)}, "one type"},
		{npu.Conv2D, nil, []npu.Desc{d(npu.I32, 2, 4, 6, 6), d(npu.I32, 6, 4, 3, 3)}, "want a float"},
		{npu.Conv2D, npu.Attrs{"bias": true}, []npu.Desc{x, w, f32(5)}, "bias is f32[5]"},
		{npu.Conv2D, nil, []npu.Desc{x.With("blocked"), w}, "layout"},
		{npu.Conv2D, nil, []npu.Desc{f32(0, 4, 6, 6), w}, "at least 1"},
		{npu.Conv2DBwdData, nil, []npu.Desc{f32(2, 6, 4, 4), w}, "lacks the attribute x_shape"},
		{npu.Conv2DBwdData, npu.Attrs{"x_shape": []int{2, 4, 6, 6}}, []npu.Desc{f32(2, 6, 5, 4), w}, "want [2 6 4 4]"},
		{npu.Conv2DBwdWeights, npu.Attrs{"w_shape": []int{6, 4, 3}}, []npu.Desc{x, f32(2, 6, 4, 4)}, "rank 4"},
		{npu.MatMul, nil, []npu.Desc{f32(2, 3), f32(2, 3)}, "inner dimensions differ"},
		{npu.MatMul, nil, []npu.Desc{f32(2, 2, 3), f32(3, 3)}, "leading dimensions"},
		{npu.MatMul, nil, []npu.Desc{f32(3), f32(3)}, "rank 2 or more"},
		{npu.MatMul, npu.Attrs{"out": "bf16"}, []npu.Desc{f32(2, 3), f32(3, 3)}, "want f32"},
		{npu.BatchNorm, nil, []npu.Desc{f32(1, 4), v, v, v, v}, "one value per channel"},
		{npu.BatchNorm, nil, []npu.Desc{x, v, f32(5), v, v}, "beta is f32[5]"},
		{npu.BatchNorm, nil, []npu.Desc{x, v, v, d(npu.BF16, 4), v}, "run_mean is bf16[4]"},
		{npu.BatchNorm, npu.Attrs{"add": true}, []npu.Desc{x, v, v, v, v, f32(2, 4, 6, 5)}, "res is"},
		{npu.BatchNorm, npu.Attrs{"momentum": 1.5}, []npu.Desc{x, v, v, v, v}, "momentum is 1.5"},
		{npu.BatchNorm, npu.Attrs{"eps": 1}, []npu.Desc{x, v, v, v, v}, "want float64"},
		{npu.BatchNorm, nil, []npu.Desc{f32(2, 4, 6), v, v, v, v}, "want 2 or 4"},
		{npu.BatchNormBwd, nil, []npu.Desc{x, f32(2, 4, 6, 5), v, v, v, v}, "dy is"},
		{npu.Relu, npu.Attrs{"alpha": 1.0}, []npu.Desc{x}, "no attribute"},
		{npu.ReluBwd, nil, []npu.Desc{x, v}, "y is"},
		{npu.Unary, npu.Attrs{"fn": "sin"}, []npu.Desc{x}, `no function "sin"`},
		{npu.Unary, npu.Attrs{"fn": "exp", "alpha": 2.0}, []npu.Desc{x}, "belongs to fn affine"},
		{npu.Binary, npu.Attrs{"fn": "pow"}, []npu.Desc{x, x}, `no function "pow"`},
		{npu.Binary, npu.Attrs{"fn": "add"}, []npu.Desc{x, v}, "do not broadcast"},
		{npu.Binary, npu.Attrs{"fn": "add"}, []npu.Desc{x, d(npu.BF16)}, "one type"},
		{npu.Reduce, npu.Attrs{"fn": "sum", "axes": []int{1, 0}}, []npu.Desc{x}, "sorted"},
		{npu.Reduce, npu.Attrs{"fn": "sum", "axes": []int{4}}, []npu.Desc{x}, "axes [4]"},
		{npu.Reduce, npu.Attrs{"fn": "prod"}, []npu.Desc{x}, `no function "prod"`},
		{npu.BroadcastTo, npu.Attrs{"shape": []int{2, 4, 6, 7}}, []npu.Desc{x}, "does not broadcast"},
		{npu.BroadcastTo, nil, []npu.Desc{x}, "lacks the attribute shape"},
		{npu.MaxPool, nil, []npu.Desc{x}, "lacks the attribute kernel"},
		{npu.MaxPool, npu.Attrs{"kernel": []int{2, 2}, "pad": []int{2, 0, 0, 0}}, []npu.Desc{x}, "only padding"},
		{npu.MaxPool, npu.Attrs{"kernel": []int{7, 7}}, []npu.Desc{x}, "does not fit"},
		{npu.MaxPoolBwd, npu.Attrs{"kernel": []int{2, 2}, "x_shape": []int{2, 4, 6, 6}}, []npu.Desc{f32(2, 4, 5, 5), f32(2, 4, 5, 5)}, "idx is"},
		{npu.AvgPoolBwd, npu.Attrs{"kernel": []int{2, 2}, "x_shape": []int{2, 4, 6, 6}}, []npu.Desc{f32(2, 4, 3, 3)}, "want [2 4 5 5]"},
		{npu.GlobalAvgPoolBwd, npu.Attrs{"x_shape": []int{2, 5, 6, 6}}, []npu.Desc{f32(2, 4)}, "want [2 5]"},
		{npu.Softmax, nil, []npu.Desc{f32()}, "scalar"},
		{npu.CrossEntropy, nil, []npu.Desc{f32(2, 3), d(npu.I64, 2)}, "labels is i64[2], want i32[2]"},
		{npu.CrossEntropy, npu.Attrs{"smoothing": 2.0}, []npu.Desc{f32(2, 3), d(npu.I32, 2)}, "smoothing is 2"},
		{npu.CrossEntropyBwd, nil, []npu.Desc{f32(2, 3), d(npu.I32, 2), f32(3), f32()}, "lse is"},
		{npu.TopK, npu.Attrs{"k": 4}, []npu.Desc{f32(2, 3), d(npu.I32, 2)}, "k is 4"},
		{npu.Dropout, npu.Attrs{"p": 1.0}, []npu.Desc{x, d(npu.I64)}, "p is 1"},
		{npu.Dropout, nil, []npu.Desc{x, d(npu.I32)}, "seed is i32[]"},
		{npu.Transpose, npu.Attrs{"perm": []int{0, 0, 1, 2}}, []npu.Desc{x}, "not a permutation"},
		{npu.Transpose, npu.Attrs{"perm": []int{1, 0}}, []npu.Desc{x}, "not a permutation"},
		{npu.Transpose, nil, []npu.Desc{x}, "not a permutation"},
		{npu.Concat, npu.Attrs{"axis": 1}, []npu.Desc{f32(2, 3), f32(3, 3)}, "more than axis 1"},
		{npu.Concat, npu.Attrs{"axis": 2}, []npu.Desc{f32(2, 3)}, "axis 2"},
		{npu.Concat, nil, nil, "takes the inputs x …, got 0"},
		{npu.Slice, npu.Attrs{"begin": []int{1}, "end": []int{1}}, []npu.Desc{v}, "empty"},
		{npu.Slice, npu.Attrs{"begin": []int{1}, "end": []int{5}}, []npu.Desc{v}, "outside"},
		{npu.Pad, npu.Attrs{"before": []int{-1}, "after": []int{0}}, []npu.Desc{v}, "negative"},
		{npu.Pad, npu.Attrs{"before": []int{1}}, []npu.Desc{v}, "for each axis"},
		{npu.Reshape, npu.Attrs{"shape": []int{3}}, []npu.Desc{v}, "4 elements"},
		{npu.Convert, npu.Attrs{"dtype": "float"}, []npu.Desc{v}, "unknown dtype"},
		{npu.Fill, npu.Attrs{"dtype": "f32"}, nil, "lacks the attribute shape"},
	}...) {
		k, err := Lookup(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Infer(c.a, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s{%s}%v: want %q, got %v", c.kind, c.a, c.in, c.want, err)
		}
	}
}

// TestNoPanic: no shape rule may panic, whatever attributes and inputs it gets.
func TestNoPanic(t *testing.T) {
	descs := []npu.Desc{f32(), f32(3), f32(2, 3), f32(2, 3, 4), f32(2, 3, 4, 5), d(npu.I32, 2), d(npu.Invalid), f32(-1, 2)}
	attrs := []npu.Attrs{
		nil, {"bias": true, "add": true, "relu": true, "sum": true}, {"kernel": []int{}, "stride": []int{1}, "perm": []int{5, 5}, "axes": []int{-1},
			"shape": []int{-1}},
		{
			"fn":     "add",
			"axis":   -1,
			"groups": -3,
		}, {"x_shape": []int{1, 2, 3, 4}, "w_shape": []int{0}, "kernel": []int{1, 1}, "begin": []int{0}, "end": []int{9}}, {"fn": 3, "shape": "x"},
		{"pos": true, "pairs": "half", "theta": 1e4, "factor": 8.0}, {"scale": 1.0, "causal": true, "seg": true}, {"rows": 2, "add": true}, {"scale": 1.0},
	}
	for _, name := range Names() {
		k, _ := Lookup(name)
		for _, a := range attrs {
			for n := range 8 {
				for _, first := range descs {
					for _, rest := range descs {
						in := make([]npu.Desc, n)
						for i := range in {
							if in[i] = rest; i == 0 {
								in[i] = first
							}
						}
						_, _ = k.Infer(a, in) // a panic fails the test
					}
				}
			}
		}
	}
}
