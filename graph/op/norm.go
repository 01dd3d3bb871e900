package op

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.BatchNorm, Infer: inferBatchNorm, Grad: gradBatchNorm, FLOPs: perElem(7),
		DiffWRT: func(a npu.Attrs, n int) []bool { return firstThree(a, n, true) },
		In:      []Class{Act, Full, Full, Full, Full, Act}, Out: []Class{Act, Full},
		State: map[int]int{3: 3, 4: 4},
	})
	Register(&Kind{
		Name: npu.BatchNormInfer, Infer: inferBatchNormInfer, Grad: gradBatchNormInfer, FLOPs: perElem(2),
		DiffWRT: func(a npu.Attrs, n int) []bool { return firstThree(a, n, true) },
		In:      []Class{Act, Full, Full, Full, Full, Act}, Out: []Class{Act}, InPlace: [][2]int{{0, 0}},
	})
	Register(&Kind{
		Name: npu.BatchNormBwd, Infer: inferBatchNormBwd, FLOPs: perElem(11),
		In: []Class{Act, Act, Full, Full, Full, Full, Act, Act}, Out: []Class{Act, Full, Full, Act},
		// Input 7 is dy2 where relu is set too; without relu dy2 is input 6, which with relu is y: not worth telling apart here.
		InPlace: [][2]int{{0, 0}, {3, 0}, {0, 7}, {3, 7}},
	})
}

// firstThree: x, gamma and beta have gradients, running statistics have none, the residual has.
func firstThree(a npu.Attrs, n int, res bool) []bool {
	d := make([]bool, n)
	for i := range d {
		d[i] = i < 3 || (i == 5 && res && a.Bool("add"))
	}
	return d
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
	names := "x gamma beta run_mean run_var"
	if a.Bool("add") {
		names += " res"
	}
	c := check(a, in, names, "eps:f momentum:f relu:b add:b")
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

func gradBatchNorm(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	in := []Ref{c.DOut, c.In[0], c.In[1], c.In[2], c.Out[1], c.Out[2]}
	if c.Attrs.Bool("relu") {
		in = append(in, c.Out[0])
	}
	d := r.many(npu.BatchNormBwd, only(c.Attrs, "eps", "relu", "add"), in...)
	g := []Ref{d[0], d[1], d[2], nil, nil}
	if c.Attrs.Bool("add") {
		g = append(g, d[3])
	}
	return r.done(g...)
}

func inferBatchNormInfer(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "x gamma beta mean var"
	if a.Bool("add") {
		names += " res"
	}
	c := check(a, in, names, "eps:f relu:b add:b")
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

// gradBatchNormInfer serves fine-tuning with frozen statistics: y is linear in x, so plain arithmetic will do.
func gradBatchNormInfer(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	x, gamma, g := c.In[0], c.In[1], r.masked(c)
	rank := len(x.Desc().Shape)
	lift := func(v Ref) Ref { // [C] → [C 1 1], in x's type
		if t := x.Desc().DType; r.err == nil && v.Desc().DType != t {
			v = r.do(npu.Convert, npu.Attrs{"dtype": t.String()}, v)
		}
		if rank == 4 {
			v = r.do(npu.Reshape, npu.Attrs{"shape": []int{x.Desc().Shape[1], 1, 1}}, v)
		}
		return v
	}
	rstd := r.unary("rsqrt", r.affine(c.In[4], 1, c.Attrs.Float("eps", 1e-5)))
	dx := r.mul(g, lift(r.mul(gamma, rstd)))
	axes := axesBut(rank, 1)
	centred := r.binary("sub", x, lift(c.In[3]))
	dgamma := r.mul(r.sum(r.mul(g, centred), axes, false), rstd)
	out := []Ref{dx, dgamma, r.sum(g, axes, false), nil, nil}
	if c.Attrs.Bool("add") {
		out = append(out, g)
	}
	return r.done(out...)
}

func inferBatchNormBwd(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	names := "dy x gamma beta mean rstd"
	if a.Bool("relu") {
		names += " y"
	}
	if a.Bool("sum") {
		names += " dy2"
	}
	c := check(a, in, names, "eps:f momentum:f relu:b add:b sum:b own_y:b")
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
