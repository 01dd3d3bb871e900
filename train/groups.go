package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/optim"
)

// ParamGroup is a set of parameters with their own optimizer settings. A parameter belongs to the first group whose Match returns true, else to the
// one that the model names with graph.Group, else to none, and is then trained as Config.Optim says.
type ParamGroup struct {
	Name  string                  // for graph.Group, and for messages; required
	Match func(param string) bool // selects parameters by full name; nil: only those that graph.Group assigns
	// LRFactor multiplies the learning rate of the step; 0 means 1. To disable training, use Frozen.
	LRFactor float64
	// WeightDecay replaces that of Config.Optim for parameters that are decayed at all: norms, biases and parameters that the model exempts with
	// graph.NoDecay keep the setting of Config.Optim. nil: not replaced.
	WeightDecay *float64
	// Frozen parameters keep their values. They have no gradient and no optimizer state, are not reduced and do not enter the norm; checkpoints hold
	// them. Running statistics of a norm are not parameters and are still updated.
	Frozen bool
}

// MatchAny returns a function that reports whether a name fits one of the patterns, in which * matches any text: for ParamGroup.Match.
func MatchAny(patterns ...string) func(name string) bool {
	return func(name string) bool {
		for _, p := range patterns {
			if matches(p, name) {
				return true
			}
		}
		return false
	}
}

// groupOption assigns each parameter to its group as the model declares it, before any gradient is built.
func (c *Config) groupOption() graph.Option {
	return graph.OnParam(func(p *graph.Param) error {
		at := slices.IndexFunc(c.Groups, func(g ParamGroup) bool { return g.Match != nil && g.Match(p.Name) })
		if at < 0 && p.Group != "" {
			if at = c.group(p.Group); at < 0 {
				return fmt.Errorf("names group %q, which the trainer does not have\nhint: %s", p.Group, c.groupHint())
			}
		}
		if at >= 0 {
			p.Group, p.Frozen = c.Groups[at].Name, p.Frozen || c.Groups[at].Frozen
		}
		return nil
	})
}

// group returns the index of a group, or -1 if there is none of that name.
func (c *Config) group(name string) int {
	return slices.IndexFunc(c.Groups, func(g ParamGroup) bool { return g.Name == name })
}

func (c *Config) groupHint() string {
	if len(c.Groups) == 0 {
		return "declare the groups with train.WithGroups"
	}
	names := make([]string, len(c.Groups))
	for i, g := range c.Groups {
		names[i] = g.Name
	}
	return "train.WithGroups has " + strings.Join(names, ", ")
}

// checkGroups reports all faults of the groups.
func (c *Config) checkGroups(need func(ok bool, format string, a ...any)) {
	need(len(c.Groups) == 0 || len(c.Optim.Groups) > optim.NoDecay,
		"parameter groups require the optimizer groups decay and no_decay\nhint: start from optim.Default")
	for i, g := range c.Groups {
		need(g.Name != "", "parameter group %d has no name", i)
		need(c.group(g.Name) == i, "two parameter groups are called %q", g.Name)
		need(g.LRFactor >= 0 && g.LRFactor < 1e9, "group %s: the learning-rate factor must not be negative, got %g", g.Name, g.LRFactor)
		need(g.WeightDecay == nil || *g.WeightDecay >= 0 && *g.WeightDecay < 1e9, "group %s: weight decay must not be negative", g.Name)
		need(!g.Frozen || g.LRFactor == 0 && g.WeightDecay == nil, "group %s is frozen, so it must not set a learning-rate factor or a decay", g.Name)
	}
}

// expandGroups adds two optimizer groups for each trained group, one with decay and one without, after the optimizer's own. Without groups it changes
// nothing.
func (c *Config) expandGroups() {
	c.Optim.Groups = slices.Clone(c.Optim.Groups)
	c.optimGroup = make([]int, len(c.Groups))
	for i, g := range c.Groups {
		if g.Frozen {
			continue
		}
		c.optimGroup[i] = len(c.Optim.Groups)
		for _, kind := range []int{optim.Decay, optim.NoDecay} {
			o := c.Optim.Groups[kind]
			o.Name = g.Name + "/" + o.Name
			if g.LRFactor != 0 {
				o.LRMult *= g.LRFactor
			}
			if g.WeightDecay != nil && kind == optim.Decay {
				o.WeightDecay = *g.WeightDecay
			}
			c.Optim.Groups = append(c.Optim.Groups, o)
		}
	}
}

// optimGroups maps the parameters of a network to the optimizer's groups. A group without parameters is an error: its pattern is probably mistyped.
func (c *Config) optimGroups(params []*graph.Param) (map[string]int, error) {
	used := make([]int, len(c.Groups))
	of := map[string]int{}
	for _, p := range params {
		kind := optim.GroupOf(len(p.Shape))
		if p.NoDecay {
			kind = optim.NoDecay
		}
		of[p.Name] = kind
		if at := c.group(p.Group); at >= 0 {
			used[at]++
			of[p.Name] = c.optimGroup[at] + kind
		}
	}
	for i, n := range used {
		if by := c.takenBy(i, params); n == 0 && by != "" {
			return nil, launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: all parameters that group %s matches are in group %s\nhint: a parameter is in the "+
				"first group that matches it; put the narrower patterns first", c.Groups[i].Name, by))
		}
		if n == 0 {
			return nil, launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: group %s matches no parameter\nhint: the network has %s; gotrain plan --parameters "+
				"lists the full names, which patterns are matched against", c.Groups[i].Name, parts(params)))
		}
	}
	c.decayLayers(params, of)
	return of, nil
}

// parts are the names of the parameters up to their first dot, as patterns: conv1.*, layer1.*, fc.*.
func parts(params []*graph.Param) string {
	var out []string
	for _, p := range params {
		name, _, dot := strings.Cut(p.Name, ".")
		if dot {
			name += ".*"
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(shorten(out, 12), " ")
}

// takenBy names an earlier group that has a parameter which group i matches, or "".
func (c *Config) takenBy(i int, params []*graph.Param) string {
	for _, p := range params {
		if m := c.Groups[i].Match; m != nil && m(p.Name) && p.Group != c.Groups[i].Name {
			return p.Group
		}
	}
	return ""
}
