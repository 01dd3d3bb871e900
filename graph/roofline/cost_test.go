package roofline

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// What an op need not touch is not counted: rows of a table that no id names, pixels between the windows of a stride.
func TestCostOf(t *testing.T) {
	f, h, i := npu.F32, npu.BF16, npu.I32
	for _, c := range []struct {
		name                string
		op                  npu.Op
		flop, reads, writes int64
		dtype               npu.DType
	}{
		{"product", npu.Op{Kind: npu.MatMul, In: []npu.Desc{npu.D(h, 4, 8), npu.D(h, 8, 2)}, Out: []npu.Desc{npu.D(f, 4, 2)}}, 128, 96, 32, h},
		{"rows of a table", npu.Op{Kind: npu.Embedding, In: []npu.Desc{npu.D(i, 3), npu.D(f, 1000, 8)}, Out: []npu.Desc{npu.D(f, 3, 8)}}, 0, 108, 96, f},
		{"a stride", npu.Op{Kind: npu.Conv2D, Attrs: npu.Attrs{"stride": []int{2, 2}}, In: []npu.Desc{npu.D(f, 1, 1, 4, 4), npu.D(f, 1, 1, 1, 1)},
			Out: []npu.Desc{npu.D(f, 1, 1, 2, 2)}}, 8, 20, 16, f},
		{"a border: 10 of the 12 products of a row of 4 are not with zeros", npu.Op{Kind: npu.Conv2D, Attrs: npu.Attrs{"stride": []int{1, 1}, "pad": []int{1, 1, 1, 1}},
			In: []npu.Desc{npu.D(f, 1, 1, 4, 4), npu.D(f, 1, 1, 3, 3)}, Out: []npu.Desc{npu.D(f, 1, 1, 4, 4)}}, 200, 100, 64, f},
		{"AdamW", npu.Op{Kind: npu.AdamW, In: []npu.Desc{npu.D(f, 9), npu.D(f, 100), npu.D(f, 100), npu.D(f, 100), npu.D(f, 100)},
			Out: []npu.Desc{npu.D(f, 100), npu.D(f, 100), npu.D(f, 100)}}, 1500, 1636, 1200, f},
		{"a kind that is not known", npu.Op{Kind: "own", In: []npu.Desc{npu.D(h, 10)}, Out: []npu.Desc{npu.D(h, 20)}}, 20, 20, 40, h},
	} {
		if got := CostOf(c.op); got != (Cost{c.flop, c.reads, c.writes, c.dtype}) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestKindOf(t *testing.T) {
	d := npu.D(npu.F32, 2, 2)
	for want, o := range map[string]npu.Op{
		"matmul dW":      {Kind: npu.MatMul, Attrs: npu.Attrs{"ta": true}},
		"matmul forward": {Kind: npu.MatMul, Attrs: npu.Attrs{"tb": true}},
		"binary add":     {Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add"}},
		"convert layout": {Kind: npu.Convert, In: []npu.Desc{d}, Out: []npu.Desc{d}},
		"convert":        {Kind: npu.Convert, In: []npu.Desc{d}, Out: []npu.Desc{npu.D(npu.BF16, 2, 2)}},
		"relu":           {Kind: npu.Relu},
	} {
		if got := KindOf(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
