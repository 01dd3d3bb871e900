package plan

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// TestConvertedWeightsStay: what is made of weights once is overwritten by no later step, even if it is read under another shape by kinds
// that may work in place.
func TestConvertedWeightsStay(t *testing.T) {
	s := &sketch{t: t}
	w := s.value("w", Param, npu.D(npu.F32, 64))
	low := s.call(false, "", npu.Convert, npu.Attrs{"dtype": "bf16"}, w)[0]
	matrix := s.call(false, "", npu.Reshape, npu.Attrs{"shape": []int{8, 8}}, low)[0]
	square := npu.Attrs{"fn": "square"}
	y := s.call(false, "", npu.Unary, square, s.call(false, "", npu.Unary, square, matrix)[0])[0]
	s.g.Outputs = []Output{{Name: "y", Value: s.call(false, "", npu.Binary, npu.Attrs{"fn": "add"}, y, y)[0]}}
	p, err := Build(&s.g, target(t), Options{Constant: true})
	if err != nil {
		t.Fatal(err)
	}
	if p.Once != 1 || len(p.Steps) < 4 {
		t.Fatalf("%d of %d steps run once", p.Once, len(p.Steps))
	}
	kept := p.Tensors[p.Steps[0].Out[0]]
	if kept.Last != len(p.Steps) {
		t.Errorf("%v is kept until step %d of %d", kept.Desc, kept.Last, len(p.Steps))
	}
	for i, st := range p.Steps[p.Once:] {
		for _, out := range st.Out {
			if x := p.Tensors[out]; x.Place == Arena && x.Offset < kept.Offset+kept.Bytes && kept.Offset < x.Offset+x.Bytes {
				t.Errorf("step %d, %s, writes to bytes %d… of the arena, where a converted weight is kept", p.Once+i, st.Op, x.Offset)
			}
		}
	}
}
