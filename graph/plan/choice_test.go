package plan

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// asked is a target that keeps what it is asked for.
type asked struct {
	fake
	ops *[]npu.Op
}

func (a asked) Choose(o npu.Op) (npu.Op, error) {
	*a.ops = append(*a.ops, o.Clone())
	return a.fake.Choose(o)
}

// The options' choices reach the device, and the plan, as attributes.
func TestChoicesReachTheDevice(t *testing.T) {
	var ops []npu.Op
	p, err := Build(residual(t, 1), asked{ops: &ops}, Options{Algorithm: func(op npu.Op) string {
		if op.Kind == npu.Conv2D && op.In[1].Shape[2] == 3 {
			return npu.Winograd4
		}
		return npu.Direct
	}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, o := range ops {
		_, named := o.Attrs[npu.AttrAlgorithm]
		if three := o.Kind == npu.Conv2D && o.In[1].Shape[2] == 3; named != three {
			t.Errorf("%s", o)
		} else if three {
			n++
		}
	}
	for i := range p.Steps {
		if p.Steps[i].Op.Attrs.Str(npu.AttrAlgorithm) != "" {
			n--
		}
	}
	if n != 0 {
		t.Errorf("the plan lacks %d of the algorithms", n)
	}
}
