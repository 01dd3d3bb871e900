package kind

import "github.com/gotrain/gotrain/npu"

func init() {
	Register(&Kind{
		Name: npu.Gelu, Attrs: "approximate:s",
		In: "x", Out: "y",
		InPlace: "y=x", Shape: inferGelu("x"), Follows: true, Cheap: true,
	})
	Register(&Kind{
		Name: npu.GeluBwd, Attrs: "approximate:s",
		In: "dy x", Out: "dx",
		InPlace: "dx=dy dx=x", Shape: inferGelu("dy", "x"), Follows: true,
	})
}

func inferGelu(names ...string) func(npu.Attrs, []npu.Desc) ([]npu.Desc, error) {
	rule := alike(1, names...)
	return func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
		c := &checker{a: a, in: in}
		if s := a.Str("approximate"); s != "" && s != "none" && s != "tanh" {
			c.failf("attribute approximate is %q, want none or tanh", s)
		}
		if !c.ok() {
			return nil, c.err
		}
		return rule(a, in)
	}
}
