package op

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func d(t npu.DType, s ...int) npu.Desc { return npu.D(t, s...) }

func f32(s ...int) npu.Desc { return npu.D(npu.F32, s...) }

func TestFLOPs(t *testing.T) {
	for _, c := range []struct {
		kind string
		a    npu.Attrs
		in   []npu.Desc
		want int64
	}{
		{npu.Conv2D, npu.Attrs{"groups": 2}, []npu.Desc{f32(2, 4, 6, 6), f32(6, 2, 3, 3)}, 2 * (2 * 6 * 4 * 4) * (2 * 3 * 3)},
		{npu.Conv2DBwdData, npu.Attrs{"groups": 2, "x_shape": []int{2, 4, 6, 6}}, []npu.Desc{f32(2, 6, 4, 4), f32(6, 2, 3, 3)}, 2 * (2 * 6 * 4 * 4) * (2 * 3 * 3)},
		{npu.Conv2DBwdWeights, npu.Attrs{"groups": 2, "w_shape": []int{6, 2, 3, 3}}, []npu.Desc{f32(2, 4, 6, 6), f32(2, 6, 4, 4)}, 2 * (2 * 6 * 4 * 4) * (2 * 3 * 3)},
		{npu.MatMul, npu.Attrs{"ta": true}, []npu.Desc{f32(7, 4, 3), f32(7, 4, 5)}, 2 * 7 * 3 * 4 * 5},
		{npu.MaxPool, npu.Attrs{"kernel": []int{2, 2}, "stride": []int{2, 2}}, []npu.Desc{f32(1, 1, 4, 4)}, 16},
		{npu.Transpose, npu.Attrs{"perm": []int{0}}, []npu.Desc{f32(4)}, 0},
		{npu.Embedding, nil, []npu.Desc{d(npu.I32, 5), f32(7, 3)}, 0},
		{npu.Attention, npu.Attrs{"scale": 1.0}, []npu.Desc{f32(2, 3, 4, 8), f32(2, 5, 2, 8), f32(2, 5, 2, 8)}, 2 * (2 * 2 * 4 * 3 * 5 * 8)},
		{npu.Attention, npu.Attrs{"scale": 1.0, "causal": true}, []npu.Desc{f32(2, 4, 4, 8), f32(2, 4, 2, 8), f32(2, 4, 2, 8)}, 2 * (2 * 2 * 4 * 4 * 4 * 8) / 2},
		{npu.AttentionBwd, npu.Attrs{"scale": 1.0}, []npu.Desc{f32(2, 3, 4, 8), f32(2, 3, 4, 8), f32(2, 5, 2, 8), f32(2, 5, 2, 8), f32(2, 3, 4, 8), f32(2, 4, 3)}, 5 * (2 * 2 * 4 * 3 * 5 * 8)},
		{npu.AttentionCached, npu.Attrs{"scale": 1.0}, []npu.Desc{f32(2, 1, 4, 8), f32(2, 5, 2, 8), f32(2, 5, 2, 8), d(npu.I32, 2, 1)}, 2 * (2 * 2 * 4 * 1 * 5 * 8)},
		{npu.LinearCrossEntropy, nil, []npu.Desc{f32(6, 3), f32(7, 3), d(npu.I32, 6)}, 2*6*3*7 + 5*6*7},
		{npu.LinearCrossEntropyBwd, nil, []npu.Desc{f32(6, 3), f32(7, 3), d(npu.I32, 6), f32(6), f32()}, 3*2*6*3*7 + 5*6*7},
	} {
		k, _ := Lookup(c.kind)
		out, err := k.Infer(c.a, c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.FLOPs(npu.Op{Kind: c.kind, Attrs: c.a, In: c.in, Out: out}); got != c.want {
			t.Errorf("%s: %d operations, want %d", c.kind, got, c.want)
		}
	}
	if n := Bytes(npu.Op{In: []npu.Desc{f32(2, 3), d(npu.BF16, 4)}, Out: []npu.Desc{d(npu.U8, 5)}}); n != 24+8+5 {
		t.Errorf("%d bytes", n)
	}
}

func TestRegister(t *testing.T) {
	if _, err := Lookup("nonsense"); err == nil {
		t.Error("unknown kind: no error")
	}
	if _, err := Lookup(npu.SGD); err == nil {
		t.Error("a kind on flat memory is found: it has no place in graphs")
	}
	k, _ := Lookup(npu.Relu)
	defer func() {
		if recover() == nil {
			t.Error("registering a kind twice does not panic")
		}
	}()
	Register(k)
}
