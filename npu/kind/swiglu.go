package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.SwiGLU,
		In:   "gate up", Out: "y",
		InPlace: "y=gate y=up", Shape: alike(1, "gate", "up"), Plain: true, Cheap: true,
	})
	Register(&Kind{
		Name: npu.SwiGLUBwd,
		In:   "dy gate up", Out: "dgate dup",
		InPlace: "dgate=gate dup=up dgate=dy dup=dy", Shape: alike(2, "dy", "gate", "up"), Plain: true,
	})
}
