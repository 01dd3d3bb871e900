package graphtest

import (
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
	out, err := k.Infer(c.Attrs, o.In)
	if err != nil || j >= len(out) {
		return npu.Desc{}
	}
	return out[j]
}
