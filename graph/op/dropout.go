package op

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Dropout, Infer: inferDropout, Grad: gradDropout,
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{true, false} },
		In:      []Class{Act, Keep}, Out: []Class{Act}, InPlace: [][2]int{{0, 0}},
	})
}

func inferDropout(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := check(a, in, "x seed", "p:f id:i")
	c.float(0, "x")
	c.typed(1, "seed", npu.I64)
	if p := a.Float("p", 0); c.ok() && !(p >= 0 && p < 1) {
		c.failf("p is %g, want 0 … 1 (excluded)", p)
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

// gradDropout applies the same mask again: the op is linear and its own transpose.
func gradDropout(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.Dropout, c.Attrs, c.DOut, c.In[1]), nil)
}
