package optim

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// lamb takes AdamW's step with the decay in it, and scales it for each tensor to the length of the weight: |w|/|step|, LAMB's trust ratio. What is not decayed
// is not scaled either, as in timm, unless AlwaysAdapt: then it is AdamW. The paper's function φ is the identity; TrustClip bounds the ratio by 1 (LAMBC).
var lamb = &rule{
	name: LAMB,
	preset: func(c *Config) {
		adam(AdamW).preset(c)
		c.Eps = 1e-6
	},
	check:  adam(AdamW).check,
	states: adam(AdamW).states,
	text: func(c *Config) string {
		s := fmt.Sprintf("betas=%g,%g eps=%g", c.Beta1, c.Beta2, c.Eps)
		if c.TrustClip {
			s += " trust_clip"
		}
		if c.AlwaysAdapt {
			s += " always_adapt"
		}
		return s
	},
	hyper:    adam(AdamW).hyper,
	width:    9,
	op:       adam(AdamW).op, // of what is not adapted
	launches: lambLaunches,
	adapts:   func(c *Config, g *Group) bool { return c.AlwaysAdapt || !g.NoAdapt && g.WeightDecay != 0 },
}

// lambLaunches makes two passes over memory: 24 bytes a parameter for the moments and the norms, 16 for the step, which is computed again.
func lambLaunches(o *Optimizer, r stretch) []launch {
	if !o.rule.adapted(&o.cfg, r.group) {
		return []launch{o.fused(r)}
	}
	v, h, sums := npu.D(npu.F32, int(r.elems)), npu.D(npu.F32, o.rule.width), npu.D(npu.F64, 2)
	m, sq := r.states[0], r.states[1]
	return []launch{{
		npu.Op{Kind: npu.LAMBMoments, Attrs: npu.Attrs{}, In: []npu.Desc{h, v, v, v, v}, Out: []npu.Desc{sums, v, v}},
		[]npu.Ptr{r.hyper, r.w, r.g, m, sq, r.sums, m, sq},
	}, {
		npu.Op{Kind: npu.LAMB, Attrs: npu.Attrs{"clip": o.cfg.TrustClip}, In: []npu.Desc{h, v, v, v, sums}, Out: []npu.Desc{v}},
		[]npu.Ptr{r.hyper, r.w, m, sq, r.sums, r.w},
	}}
}
