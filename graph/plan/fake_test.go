package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// fake is a target that likes blocked layouts: activations of convolutions live in "blk", weights in "w:f" forward, "w:g" as gradients and
// "w:b" for the data gradient; everything else keeps what its largest input has.
type fake struct{ lacks []string }

func (f fake) Has(kind string, a npu.Attrs) bool {
	return !slices.ContainsFunc(f.lacks, func(s string) bool {
		k, attr, _ := strings.Cut(s, "+")
		return k == kind && (attr == "" || a.Bool(attr))
	})
}

func (f fake) Bytes(d npu.Desc) (int64, error) {
	if d.Layout == npu.Any {
		return 0, fmt.Errorf("undecided layout of %v", d)
	}
	return d.PlainBytes(), nil
}

func (f fake) Choose(o npu.Op) (npu.Op, error) {
	o = o.Clone()
	set := func(d []npu.Desc, l ...npu.Layout) {
		for i := range d {
			if i < len(l) && len(d[i].Shape) > 1 {
				d[i].Layout = l[i]
			} else {
				d[i].Layout = npu.Plain
			}
		}
	}
	switch o.Kind {
	case npu.Conv2D:
		set(o.In, "blk", "w:f")
		set(o.Out, "blk")
	case npu.Conv2DBwdData:
		set(o.In, "blk", "w:b")
		set(o.Out, "blk")
	case npu.Conv2DBwdWeights:
		set(o.In, "blk", "blk")
		set(o.Out, "w:g")
	case npu.MatMul, npu.Transpose, npu.CrossEntropy, npu.CrossEntropyBwd:
		set(o.In)
		set(o.Out)
	default:
		l := npu.Plain
		for _, d := range o.In {
			if len(d.Shape) > 1 && d.Layout != npu.Any {
				l = d.Layout
				break
			}
		}
		all := slices.Repeat([]npu.Layout{l}, 12)
		set(o.In, all...)
		set(o.Out, all...)
	}
	return o, nil
}
