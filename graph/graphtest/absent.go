package graphtest

import (
	"maps"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// absent is the desc that output j would have if somebody wanted it.
func (m *Machine) absent(c plan.Call, o npu.Op, j int) npu.Desc {
	k, err := op.Lookup(c.Kind)
	if err != nil {
		return npu.Desc{}
	}
	a := c.Attrs
	if k.Complete != nil && len(o.Out) > 0 { // the type that a device reads from output 0
		a = a.Clone()
		maps.Copy(a, k.Complete(o))
	}
	out, err := k.Infer(a, o.In)
	if err != nil || j >= len(out) {
		return npu.Desc{}
	}
	return out[j]
}
