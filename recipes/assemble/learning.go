package assemble

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/recipes"
)

// Setting is something that a recipe says about learning, in words for people.
type Setting struct{ What, Text string }

// Learning lists how a recipe updates weights: the optimizer, and of clipping, averages, stochastic depth and groups of parameters what is used.
func Learning(r *recipes.Recipe) []Setting {
	out := []Setting{{"optimizer", optimizer(r)}}
	add := func(on bool, what, format string, a ...any) {
		if on {
			out = append(out, Setting{what, fmt.Sprintf(format, a...)})
		}
	}
	o := &r.Optim
	add(o.LayerDecay != 1, "layer decay", "each layer learns %g times as fast as the one behind it", o.LayerDecay)
	add(r.Train.ClipNorm > 0, "clip norm", "%g", r.Train.ClipNorm)
	add(o.EMADecay > 0 && o.EMAWarmup, "average", "of the weights, decay %g, less in the first steps; evaluation uses it", o.EMADecay)
	add(o.EMADecay > 0 && !o.EMAWarmup, "average", "of the weights, decay %g; evaluation uses it", o.EMADecay)
	f, _ := models.Find(r.Model.Name)
	add(r.Model.DropPath > 0 && f.Recipe != nil && slices.Contains(f.Recipe.Keys, "model.drop_path"),
		"drop path", "%g in the last block, linearly less in those before it", r.Model.DropPath)
	for _, g := range r.ParamGroups() {
		match := strings.Join(strings.Fields(g.Match), " ")
		add(g.Frozen, "frozen", "%s", match)
		add(!g.Frozen, "group "+g.Name, "%s: %s", match, groupText(g))
	}
	return out
}

// optimizer describes the rule and its decay: "sgd momentum=0.9, weight decay 0.0001 except for norms and biases".
func optimizer(r *recipes.Recipe) string {
	o := &r.Optim
	text := Optimizer(r).RuleString()
	switch {
	case o.WeightDecay == 0:
		return text + ", no weight decay"
	case o.NoDecayNormBias:
		return fmt.Sprintf("%s, weight decay %g except for norms and biases", text, o.WeightDecay)
	}
	return fmt.Sprintf("%s, weight decay %g", text, o.WeightDecay)
}

func groupText(g recipes.Group) string {
	var parts []string
	if g.LRFactor != nil {
		parts = append(parts, fmt.Sprintf("learning rate x %g", *g.LRFactor))
	}
	if g.WeightDecay != nil {
		parts = append(parts, fmt.Sprintf("weight decay %g", *g.WeightDecay))
	}
	if len(parts) == 0 {
		return "as the others"
	}
	return strings.Join(parts, ", ")
}
