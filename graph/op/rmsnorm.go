package op

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.RMSNorm, Infer: inferRMSNorm, Grad: gradRMSNorm, FLOPs: perElem(4),
		In: []Class{Act, Full, Act}, Out: []Class{Act, Full, Act}, InPlace: [][2]int{{0, 0}, {2, 0}, {2, 2}, {0, 2}},
	})
	Register(&Kind{
		Name: npu.RMSNormBwd, Infer: inferRMSNormBwd, FLOPs: perElem(9),
		In: []Class{Act, Act, Full, Full, Act}, Out: []Class{Act, Full}, InPlace: [][2]int{{0, 0}, {0, 4}},
	})
}

// lead is a shape without its last axis.
func lead(s npu.Shape) npu.Shape { return s[:len(s)-1].Clone() }

// rowsOf demands that input i is a float with a last axis, and input w the vector that belongs to it.
func (c *checker) rowsOf(i int, name string, w int) {
	c.float(i, name)
	if c.ok() && len(c.in[i].Shape) == 0 {
		c.failf("%s is a scalar, want a last axis to normalise over", name)
	}
	if c.ok() {
		c.full(w, "w", c.in[i].Shape[len(c.in[i].Shape)-1])
	}
}

func inferRMSNorm(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "x w"
	if a.Bool("add") {
		names += " res"
	}
	c := check(a, in, names, "eps:f add:b")
	c.rowsOf(0, "x", 1)
	c.between("eps", 1e-5, 0, 1)
	if a.Bool("add") {
		c.like(2, 0, "res", "x")
	}
	if !c.ok() {
		return nil, c.err
	}
	out := []npu.Desc{in[0], {Shape: lead(in[0].Shape), DType: fullType(in[0].DType)}}
	if a.Bool("add") {
		out = append(out, in[0])
	}
	return c.done(out...)
}

// gradRMSNorm knows the form without the sum only: the plan makes the other one, after differentiation.
func gradRMSNorm(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	d := r.many(npu.RMSNormBwd, npu.Attrs{"eps": c.Attrs.Float("eps", 1e-5), "add": false}, c.DOut, c.In[0], c.In[1], c.Out[1])
	return r.done(d[0], d[1])
}

func inferRMSNormBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "dy x w rstd"
	if a.Bool("add") {
		names += " dres"
	}
	c := check(a, in, names, "eps:f add:b")
	c.rowsOf(1, "x", 2)
	c.like(0, 1, "dy", "x")
	if c.ok() {
		c.full(3, "rstd", lead(in[1].Shape)...)
	}
	if a.Bool("add") {
		c.like(4, 1, "dres", "x")
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[1], npu.D(fullType(in[1].DType), in[2].Shape...))
}
