package plan

import "github.com/gotrain/gotrain/npu"

// hoist moves conversions of parameters, and conversions of those, to the front.
func (p *Plan) hoist() {
	constant := make([]bool, len(p.Tensors))
	for i := range p.Tensors {
		constant[i] = p.Tensors[i].Role == Param
	}
	var once, rest []Step
	for _, s := range p.Steps {
		if s.Op.Kind == npu.Convert && s.Host == nil && constant[s.In[0]] && p.Tensors[s.Out[0]].Place == Arena {
			constant[s.Out[0]] = true
			once = append(once, s)
			continue
		}
		rest = append(rest, s)
	}
	p.Once = len(once)
	p.Steps = append(once, rest...)
}
