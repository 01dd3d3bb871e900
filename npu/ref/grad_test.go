package ref_test

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/nputest"
	"github.com/gotrain/gotrain/npu/ref"
)

func d64(shape ...int) npu.Desc { return npu.D(npu.F64, shape...) }

// TestGradients compares every backward kind with central differences of its forward, in the shapes of the suite.
func TestGradients(t *testing.T) {
	for _, kind := range kindsOfContract(t) {
		checked := 0
		for _, c := range nputest.Cases(kind, npu.F64) {
			if len(c.Grads) == 0 {
				continue
			}
			checked++
			if err := nputest.CheckGradient(c); err != nil {
				t.Error(err)
			}
		}
		backward := strings.HasSuffix(kind, "_bwd") || kind == npu.Conv2DBwdData || kind == npu.Conv2DBwdWeights || kind == npu.LinearCrossEntropyGrad
		if backward && checked < 3 {
			t.Errorf("%s: %d gradient checks", kind, checked)
		}
	}
}

func outputs(op npu.Op) [][]byte {
	var out [][]byte
	for _, d := range op.Out {
		out = append(out, make([]byte, d.PlainBytes()))
	}
	return out
}

// A residual normalised with its sum has the gradient of the sum: the plan relies on it.
func TestResidualGradient(t *testing.T) {
	x, w, rows := d64(2, 5), d64(5), d64(2)
	a, b, gain := []float64{1, -2, 0.5, 3, 1, 0.3, 2, -1, 1, 4}, []float64{0.5, 1, -1, 2, 2, 0.7, -3, 1, 1, 0.1}, []float64{1, 0.5, -2, 1.5, 0.3}
	run := func(op npu.Op, in ...[]byte) [][]byte {
		out := outputs(op)
		if err := ref.Run(op, append(in, out...)); err != nil {
			t.Fatal(err)
		}
		return out
	}
	sum := make([]float64, len(a))
	for i := range a {
		sum[i] = a[i] + b[i]
	}
	eps := npu.Attrs{"eps": 1e-3}
	sums := npu.Attrs{"eps": 1e-3, "add": true}
	op := npu.Op{Kind: npu.RMSNorm, Attrs: sums, In: []npu.Desc{x, w, x}, Out: []npu.Desc{x, rows, x}}
	added := run(op, f64s(a), f64s(gain), f64s(b))
	plain := run(npu.Op{Kind: npu.RMSNorm, Attrs: eps, In: []npu.Desc{x, w}, Out: []npu.Desc{x, rows}}, f64s(sum), f64s(gain))
	if string(added[0]) != string(plain[0]) || string(added[1]) != string(plain[1]) || string(added[2]) != string(f64s(sum)) {
		t.Error("the normalised sum differs from the sum, normalised")
	}
}
