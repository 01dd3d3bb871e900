package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.BatchNorm, Attrs: "eps:f momentum:f relu:b add:b",
		In: "x gamma:full beta:full run_mean:full run_var:full res?add", Out: "y mean:full,nil,saved rstd:full,nil,saved run_mean:full,nil run_var:full,nil",
		State: "run_mean=run_mean run_var=run_var", Shape: inferBatchNorm,
	})
	Register(&Kind{
		Name: npu.BatchNormInfer, Attrs: "eps:f relu:b add:b",
		In: "x gamma:full beta:full mean:full var:full res?add", Out: "y",
		InPlace: "y=x", Shape: inferBatchNormInfer, Cheap: true,
	})
	Register(&Kind{
		Name: npu.BatchNormBwd, Attrs: "eps:f momentum:f relu:b add:b sum:b own_y:b",
		In: "dy x gamma:full beta:full mean:full rstd:full y?relu dy2?sum", Out: "dx dgamma:full,nil dbeta:full,nil dres?add",
		InPlace: "dx=dy dres=dy dx=dy2 dres=dy2", Shape: inferBatchNormBwd,
	})
}

// channels checks x [N C H W] or [N C] and the four vectors of the channels behind it.
func (c *checker) channels(x, first int, names ...string) {
	c.rank(x, "x", 2, 4)
	c.float(x, "x")
	if !c.ok() {
		return
	}
	for i, n := range names {
		c.full(first+i, n, c.in[x].Shape[1])
	}
}

func inferBatchNorm(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.channels(0, 1, "gamma", "beta", "run_mean", "run_var")
	c.between("eps", 1e-5, 0, 1)
	c.between("momentum", 0.1, 0, 1)
	if !c.ok() {
		return nil, c.err
	}
	x := in[0].Shape
	if x.Elems() == int64(x[1]) {
		c.failf("x %v has one value per channel: there is no variance to normalise with\nhint: use a larger batch, or evaluation mode", x)
	}
	if a.Bool("add") {
		c.like(5, 0, "res", "x")
	}
	v := npu.D(fullType(in[0].DType), x[1])
	return c.done(in[0], v, v, v, v)
}

func inferBatchNormInfer(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.channels(0, 1, "gamma", "beta", "mean", "var")
	c.between("eps", 1e-5, 0, 1)
	if a.Bool("add") {
		c.like(5, 0, "res", "x")
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}

func inferBatchNormBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.channels(1, 2, "gamma", "beta", "mean", "rstd")
	c.like(0, 1, "dy", "x")
	for i := 6; c.ok() && i < len(in); i++ {
		c.like(i, 1, "y or dy2", "x")
	}
	if !c.ok() {
		return nil, c.err
	}
	v := npu.D(fullType(in[1].DType), in[1].Shape[1])
	out := []npu.Desc{in[1], v, v}
	if a.Bool("add") {
		out = append(out, in[1])
	}
	return c.done(out...)
}
