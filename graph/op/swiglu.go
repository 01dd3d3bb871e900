package op

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{Name: npu.SwiGLU, Infer: inferSwiGLU, Grad: gradSwiGLU, FLOPs: perElem(6), InPlace: [][2]int{{0, 0}, {0, 1}}})
	Register(&Kind{Name: npu.SwiGLUBwd, Infer: inferSwiGLUBwd, FLOPs: perElem(12), InPlace: [][2]int{{0, 1}, {1, 2}, {0, 0}, {1, 0}}})
}

func inferSwiGLU(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "gate up", "")
	c.floats(0)
	c.like(1, 0, "up", "gate")
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

func gradSwiGLU(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	d := r.many(npu.SwiGLUBwd, nil, c.DOut, c.In[0], c.In[1])
	return r.done(d[0], d[1])
}

func inferSwiGLUBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "dy gate up", "")
	c.floats(0)
	c.like(1, 0, "gate", "dy")
	c.like(2, 0, "up", "dy")
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0], in[0])
}
