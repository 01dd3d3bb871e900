package assemble

import (
	"strings"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
)

// monitor says which evaluation is the best, and what follows from it.
func monitor(r *recipes.Recipe) train.Monitor {
	m := train.Monitor{Metric: r.Eval.Monitor, MinDelta: r.Eval.MinDelta, Patience: r.Eval.Patience, KeepBest: r.Checkpoint.KeepBest}
	if r.Eval.MonitorMode != "auto" {
		m.Mode = r.Eval.MonitorMode
	}
	if s := &r.Schedule; s.Kind == "plateau" {
		m.Plateau = &train.Plateau{Patience: s.PlateauPatience, Gamma: s.Gamma, MinRatio: s.MinLRRatio}
	}
	return m
}

// groups returns the sets of parameters with settings of their own.
func groups(r *recipes.Recipe) (out []train.ParamGroup) {
	for _, g := range r.ParamGroups() {
		p := train.ParamGroup{Name: g.Name, Match: train.MatchAny(strings.Fields(g.Match)...), WeightDecay: g.WeightDecay, Frozen: g.Frozen}
		if g.LRFactor != nil {
			p.LRFactor = *g.LRFactor
		}
		out = append(out, p)
	}
	return out
}
