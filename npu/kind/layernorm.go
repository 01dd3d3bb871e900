package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.LayerNorm, Attrs: "eps:f add:b",
		In: "x w:full b:full res?add", Out: "y mean:full,nil,saved rstd:full,nil,saved sum?add",
		InPlace: "y=x sum=x sum=res y=res", Shape: inferLayerNorm, Plain: true, Cheap: true, Again: layerNormOfSum,
	})
	Register(&Kind{
		Name: npu.LayerNormBwd, Attrs: "eps:f add:b",
		In: "dy x w:full mean:full rstd:full dres?add", Out: "dx dw:full,nil db:full,nil",
		InPlace: "dx=dy dx=dres", Shape: inferLayerNormBwd, Plain: true,
	})
}

// layerNormOfSum normalises the sum that the first call kept for its gradient, like normOfSum.
func layerNormOfSum(op npu.Op) (npu.Op, []int) {
	again := op.Clone()
	if !op.Attrs.Bool("add") {
		return again, []int{0, 1, 2}
	}
	again.Attrs = op.Attrs.Clone()
	again.Attrs["add"] = false
	again.In, again.Out = []npu.Desc{op.Out[3], op.In[1], op.In[2]}, again.Out[:3]
	return again, []int{len(op.In) + 3, 1, 2}
}

func inferLayerNorm(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rowsOf(0, "x", 1)
	c.like(2, 1, "b", "w")
	c.between("eps", 1e-5, 0, 1)
	if a.Bool("add") {
		c.like(3, 0, "res", "x")
	}
	if !c.ok() {
		return nil, c.err
	}
	row := npu.Desc{Shape: lead(in[0].Shape), DType: fullType(in[0].DType)}
	out := []npu.Desc{in[0], row, row}
	if a.Bool("add") {
		out = append(out, in[0])
	}
	return c.done(out...)
}

func inferLayerNormBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.rowsOf(1, "x", 2)
	c.like(0, 1, "dy", "x")
	if c.ok() {
		c.full(3, "mean", lead(in[1].Shape)...)
		c.full(4, "rstd", lead(in[1].Shape)...)
	}
	if a.Bool("add") {
		c.like(5, 1, "dres", "x")
	}
	if !c.ok() {
		return nil, c.err
	}
	w := npu.D(fullType(in[1].DType), in[2].Shape...)
	return c.done(in[1], w, w)
}
