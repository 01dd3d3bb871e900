package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.SwiGLU,
		In:   "gate up", Out: "y",
		InPlace: "y=gate y=up", Shape: inferSwiGLU, Plain: true,
	})
	Register(&Kind{
		Name: npu.SwiGLUBwd,
		In:   "dy gate up", Out: "dgate dup",
		InPlace: "dgate=gate dup=up dgate=dy dup=dy", Shape: inferSwiGLUBwd, Plain: true,
	})
}

func inferSwiGLU(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.floats(0)
	c.like(1, 0, "up", "gate")
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

func inferSwiGLUBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.floats(0)
	c.like(1, 0, "gate", "dy")
	c.like(2, 0, "up", "dy")
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0], in[0])
}
