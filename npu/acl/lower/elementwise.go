package lower

import "github.com/gotrain/gotrain/npu"

var elementRules = map[string]rule{
	npu.Relu: {lower: func(b *builder) { b.call("Relu", b.in(0), b.out(0)) }},
}
