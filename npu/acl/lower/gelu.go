package lower

import "github.com/gotrain/gotrain/npu"

var geluRules = map[string]rule{
	npu.Gelu:    {lower: lowerGelu, needs: []string{"GeluV2"}},
	npu.GeluBwd: {lower: lowerGeluBwd, needs: []string{"GeluBackwardV2"}},
}

func tanhForm(b *builder) bool { return b.op.Attrs.Str("approximate") == "tanh" }

func lowerGelu(b *builder) {
	form := 0
	if tanhForm(b) {
		form = 1
	}
	b.call("GeluV2", b.in(0), form, b.out(0))
}

func lowerGeluBwd(b *builder) {
	form := "none"
	if tanhForm(b) {
		form = "tanh"
	}
	b.call("GeluBackwardV2", b.in(0), b.in(1), form, b.out(0))
}
