package kind

import "github.com/gotrain/gotrain/npu"

// The kinds on flat memory: vectors in float32, whose outputs lie where the inputs of the same name are.
func init() {
	Register(&Kind{
		Name: npu.SGD, Attrs: "nesterov:b decoupled:b has_momentum:b",
		In: "hyper:full w:full g:full m:full?has_momentum", Out: "w:full m:full?has_momentum", InPlace: "w=w m=m", Shape: flat(8, 1, 3),
	})
	Register(&Kind{
		Name: npu.AdamW, Attrs: "coupled:b",
		In: "hyper:full w:full g:full m:full v:full", Out: "w:full m:full v:full", InPlace: "w=w m=m v=v", Shape: flat(9, 1, 3, 4),
	})
	Register(&Kind{Name: npu.SumSq, In: "g:full s:keep?", Out: "s:keep", Shape: inferSumSq})
	Register(&Kind{
		Name: npu.LARS, Attrs: "skip:b",
		In: "hyper:full w:full g:full m:full sw:keep sg:keep", Out: "w:full m:full", InPlace: "w=w m=m", Shape: inferLARS,
	})
	Register(&Kind{
		Name: npu.LAMBMoments,
		In:   "hyper:full w:full g:full m:full v:full", Out: "s:keep m:full v:full", InPlace: "m=m v=v", Shape: inferLAMBMoments,
	})
	Register(&Kind{
		Name: npu.LAMB, Attrs: "clip:b",
		In: "hyper:full w:full m:full v:full s:keep", Out: "w:full", InPlace: "w=w", Shape: inferLAMB,
	})
	Register(&Kind{Name: npu.EMA, In: "hyper:full average:full x:full", Out: "average:full", InPlace: "average=average", Shape: flat(2, 1)})
	Register(&Kind{Name: npu.Scale, In: "hyper:full x:full", Out: "x:full", InPlace: "x=x", Shape: flat(1, 1)})
}

// flat requires a vector of hyperparameters first, and vectors of one length and type behind it; outputs are like the inputs that are listed.
func flat(hyper int, outs ...int) func(npu.Attrs, []npu.Desc) ([]npu.Desc, error) {
	return func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
		c := &checker{a: a, in: in}
		c.full(0, "hyper", hyper)
		c.vectors(len(in))
		if !c.ok() {
			return nil, c.err
		}
		var out []npu.Desc
		for _, i := range outs {
			if i < len(in) {
				out = append(out, in[i])
			}
		}
		return c.done(out...)
	}
}

// vectors requires inputs 1 to n-1 to be alike.
func (c *checker) vectors(n int) {
	c.rank(1, "input 1", 1)
	c.float(1, "input 1")
	for i := 2; c.ok() && i < n; i++ {
		c.like(i, 1, "a vector", "the first one")
	}
}

func inferSumSq(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.float(0, "g")
	if len(in) > 1 {
		c.typed(1, "s", npu.F64, 2)
	}
	return c.done(npu.D(npu.F64, 2))
}

func inferLARS(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.full(0, "hyper", 8)
	c.vectors(4)
	c.typed(4, "sw", npu.F64, 2)
	c.typed(5, "sg", npu.F64, 2)
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[1], in[3])
}

func inferLAMBMoments(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.full(0, "hyper", 9)
	c.vectors(5)
	if !c.ok() {
		return nil, c.err
	}
	return c.done(npu.D(npu.F64, 2), in[3], in[4])
}

func inferLAMB(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.full(0, "hyper", 9)
	c.vectors(4)
	c.typed(4, "s", npu.F64, 2)
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[1])
}
