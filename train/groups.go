package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/optim"
)

// ParamGroup is a set of parameters that the optimizer treats in a way of their own. A parameter belongs to the first group whose Match says so, else to
// the one that the model names with graph.Group, else to none, and is then trained as Config.Optim says.
type ParamGroup struct {
	Name  string                  // for graph.Group, and for messages; needed
	Match func(param string) bool // parameters by their full name; nil: only those that graph.Group puts here
	// LRFactor is multiplied by the learning rate of the step; 0 is 1. For no training at all, see Frozen.
	LRFactor float64
	// WeightDecay replaces that of Config.Optim, for parameters that are decayed at all: norms, biases and what the model exempts with graph.NoDecay stay as
	// Config.Optim has them. nil: not replaced.
	WeightDecay *float64
	// Frozen parameters keep their values. They have no gradient, no optimizer state, are not reduced and do not enter the norm; checkpoints hold them. Running
	// statistics of a norm are no parameters and go on.
	Frozen bool
}

// groupOption assigns each parameter to its group as the model declares it, before any gradient is built.
func (c *Config) groupOption() graph.Option {
	return graph.OnParam(func(p *graph.Param) error {
		at := slices.IndexFunc(c.Groups, func(g ParamGroup) bool { return g.Match != nil && g.Match(p.Name) })
		if at < 0 && p.Group != "" {
			if at = c.group(p.Group); at < 0 {
				return fmt.Errorf("names the group %q, which the trainer does not have\nhint: %s", p.Group, c.groupHint())
			}
		}
		if at >= 0 {
			p.Group, p.Frozen = c.Groups[at].Name, p.Frozen || c.Groups[at].Frozen
		}
		return nil
	})
}

// group is the index of a group, -1 where there is none of that name.
func (c *Config) group(name string) int {
	return slices.IndexFunc(c.Groups, func(g ParamGroup) bool { return g.Name == name })
}

func (c *Config) groupHint() string {
	if len(c.Groups) == 0 {
		return "train.WithGroups says what its groups are"
	}
	names := make([]string, len(c.Groups))
	for i, g := range c.Groups {
		names[i] = g.Name
	}
	return "train.WithGroups has " + strings.Join(names, ", ")
}

// checkGroups names every fault of the groups.
func (c *Config) checkGroups(need func(ok bool, format string, a ...any)) {
	need(len(c.Groups) == 0 || len(c.Optim.Groups) > optim.NoDecay,
		"groups of parameters need the optimizer's two, decay and no_decay\nhint: start from optim.Default")
	for i, g := range c.Groups {
		need(g.Name != "", "group %d of parameters has no name", i)
		need(c.group(g.Name) == i, "there are two groups of parameters called %q", g.Name)
		need(g.LRFactor >= 0 && g.LRFactor < 1e9, "group %s: the factor of the learning rate must not be negative, got %g", g.Name, g.LRFactor)
		need(g.WeightDecay == nil || *g.WeightDecay >= 0 && *g.WeightDecay < 1e9, "group %s: weight decay must not be negative", g.Name)
		need(!g.Frozen || g.LRFactor == 0 && g.WeightDecay == nil, "group %s is frozen, so it has neither a learning rate nor a decay", g.Name)
	}
}

// expandGroups gives the optimizer two groups for each that is trained, decayed and not, behind its own. Without groups it changes nothing.
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

// optimGroups maps the parameters of a network to the optimizer's groups. A group without parameters is an error: its pattern has a slip.
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
		if n == 0 {
			return nil, fmt.Errorf("train: no parameter is in group %s\nhint: gotrain plan lists the parameters; Match gets their full names, such as %s",
				c.Groups[i].Name, example(params))
		}
	}
	return of, nil
}

func example(params []*graph.Param) string {
	if len(params) == 0 {
		return "fc.weight"
	}
	return params[len(params)-1].Name
}
