package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.RMSNorm, Attrs: "eps:f add:b",
		In: "x w:full res?add", Out: "y rstd:full,nil,saved sum?add",
		InPlace: "y=x sum=x sum=res y=res", Shape: inferRMSNorm, Plain: true, Cheap: true, Again: normOfSum,
	})
	Register(&Kind{
		Name: npu.RMSNormBwd, Attrs: "eps:f add:b",
		In: "dy x w:full rstd:full dres?add", Out: "dx dw:full",
		InPlace: "dx=dy dx=dres", Shape: inferRMSNormBwd, Plain: true,
	})
}

// normOfSum normalises the sum that the first call kept for its gradient. The first call rounded it before it was normalised.
func normOfSum(op npu.Op) (npu.Op, []int) {
	again := op.Clone()
	if !op.Attrs.Bool("add") {
		return again, []int{0, 1}
	}
	again.Attrs = op.Attrs.Clone()
	again.Attrs["add"] = false
	again.In, again.Out = []npu.Desc{op.Out[2], op.In[1]}, again.Out[:2]
	return again, []int{len(op.In) + 2, 1}
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
	c := &checker{a: a, in: in}
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

func inferRMSNormBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
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
