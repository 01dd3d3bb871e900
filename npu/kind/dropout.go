package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Dropout, Attrs: "p:f id:i rows:b",
		In: "x seed:keep", Out: "y",
		InPlace: "y=x", Shape: inferDropout, Follows: true, Cheap: true,
	})
}

func inferDropout(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	c := &checker{a: a, in: in}
	c.float(0, "x")
	c.typed(1, "seed", npu.I64)
	if p := a.Float("p", 0); c.ok() && !(p >= 0 && p < 1) {
		c.failf("p is %g, want 0 … 1 (excluded)", p)
	}
	if c.ok() && a.Bool("rows") && len(in[0].Shape) == 0 {
		c.failf("x is a scalar, which has no rows")
	}
	if !c.ok() {
		return nil, c.err
	}
	return c.done(in[0])
}
