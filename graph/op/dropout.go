package op

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

func init() {
	Register(&Kind{
		Kind: kind.Of(npu.Dropout), Grad: gradDropout,
		DiffWRT: func(npu.Attrs, int) []bool { return []bool{true, false} },
	})
}

// gradDropout applies the same mask again: the op is linear and its own transpose.
func gradDropout(t Tape, c Call) ([]Ref, error) {
	r := &rule{t: t}
	return r.done(r.do(npu.Dropout, c.Attrs, c.DOut, c.In[1]), nil)
}
