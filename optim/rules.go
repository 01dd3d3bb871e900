package optim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// The rules.
const (
	SGD   = "sgd"   // stochastic gradient descent; momentum, Nesterov, dampening
	AdamW = "adamw" // Adam with decoupled decay (arXiv 1711.05101)
	Adam  = "adam"  // Adam with the decay added to the gradient, as torch.optim.Adam (arXiv 1412.6980)
	LARS  = "lars"  // layer-wise adaptive rates (arXiv 1708.03888), for very large batches
	LAMB  = "lamb"  // AdamW's step at a rate for each layer (arXiv 1904.00962, as timm has it), for very large batches
)

// rule is everything that this package knows about one optimizer. A rule that is not in the table is always an error.
type rule struct {
	name string
	// preset fills in the customary numbers.
	preset func(c *Config)
	// check reports invalid hyperparameters.
	check func(c *Config, bad func(format string, a ...any))
	// states are the vectors that it keeps, each as large as the weights.
	states func(c *Config) []string
	// text formats its hyperparameters.
	text func(c *Config) string
	// hyper are its numbers of step t behind the learning rate and the gradient's scale, in the order of kinds.go; first is 1 in the first step.
	hyper func(c *Config, g *Group, first float64, t int64) numbers
	// width is the number of elements that kinds.go gives its hyper vector.
	width int
	// op describes the kernel that steps one run of a group; launches does it for rules that need more than one.
	op       func(c *Config, g *Group) npu.Op
	launches func(o *Optimizer, r stretch) []launch
	// adapts reports whether each tensor of a group has its own rate, from norms of its own; nil: never.
	adapts func(c *Config, g *Group) bool
	// adds: the norms are added to what lies in their place, so it must be zeroed before.
	adds bool
}

// adapted reports whether each tensor of a group has its own rate.
func (r *rule) adapted(c *Config, group int) bool {
	return r.adapts != nil && r.adapts(c, &c.Groups[group])
}

// numbers are those of a rule in a hyper vector; by value, as a step allocates nothing.
type numbers [hyperLen - 2]float64

// rules is the table, in the order in which they are documented.
var rules = []*rule{sgd, adam(AdamW), adam(Adam), lars, lamb}

// Rules lists the names of the rules in the order in which they are documented.
func Rules() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// rule finds the rule of a configuration.
func (c *Config) rule() (*rule, error) {
	if i := slices.IndexFunc(rules, func(r *rule) bool { return r.name == c.Rule }); i >= 0 {
		return rules[i], nil
	}
	return nil, fmt.Errorf("optim: unknown rule %q\nhint: use one of %s", c.Rule, strings.Join(Rules(), ", "))
}

var sgd = &rule{
	name:   SGD,
	preset: func(c *Config) { c.Momentum = 0.9 },
	check: func(c *Config, bad func(string, ...any)) {
		unit(c, "momentum", c.Momentum, bad)
		if !(c.Dampening >= 0 && c.Dampening <= 1) {
			bad("sgd: dampening must lie in 0…1, got %g", c.Dampening)
		}
		if c.Nesterov && (c.Momentum == 0 || c.Dampening != 0) {
			bad("sgd: nesterov requires momentum and no dampening, got momentum %g, dampening %g", c.Momentum, c.Dampening)
		}
	},
	states: func(c *Config) []string {
		if c.Momentum == 0 {
			return nil
		}
		return []string{"momentum"}
	},
	text: func(c *Config) string {
		return fmt.Sprintf("momentum=%g dampening=%g nesterov=%t decoupled=%t", c.Momentum, c.Dampening, c.Nesterov, c.Decoupled)
	},
	hyper: func(c *Config, g *Group, first float64, _ int64) numbers {
		return numbers{c.Momentum, g.WeightDecay, c.Dampening, first}
	},
	width: 8,
	op: func(c *Config, _ *Group) npu.Op {
		return npu.Op{Kind: npu.SGD, Attrs: npu.Attrs{"nesterov": c.Nesterov, "decoupled": c.Decoupled, "has_momentum": c.Momentum != 0}}
	},
}

// adam is Adam in its two forms, which differ in where the decay goes.
func adam(name string) *rule {
	return &rule{
		name:   name,
		preset: func(c *Config) { c.Beta1, c.Beta2, c.Eps = 0.9, 0.999, 1e-8 },
		check: func(c *Config, bad func(string, ...any)) {
			unit(c, "beta1", c.Beta1, bad)
			unit(c, "beta2", c.Beta2, bad)
			if !(c.Eps > 0) || math.IsInf(c.Eps, 0) {
				bad("%s: eps must be above 0, got %g", c.Rule, c.Eps)
			}
		},
		states: func(*Config) []string { return []string{"exp_avg", "exp_avg_sq"} },
		text:   func(c *Config) string { return fmt.Sprintf("betas=%g,%g eps=%g", c.Beta1, c.Beta2, c.Eps) },
		hyper: func(c *Config, g *Group, _ float64, t int64) numbers {
			return numbers{c.Beta1, c.Beta2, c.Eps, g.WeightDecay, correction(c.Beta1, t), correction(c.Beta2, t), float64(t)}
		},
		width: 9,
		op: func(*Config, *Group) npu.Op {
			return npu.Op{Kind: npu.AdamW, Attrs: npu.Attrs{"coupled": name == Adam}}
		},
	}
}

var lars = &rule{
	name:   LARS,
	preset: func(c *Config) { c.Momentum, c.Trust, c.Eps = 0.9, 0.001, 1e-9 },
	check: func(c *Config, bad func(string, ...any)) {
		unit(c, "momentum", c.Momentum, bad)
		if !(c.Trust > 0) || math.IsInf(c.Trust, 0) {
			bad("lars: trust must be above 0, got %g", c.Trust)
		}
		if !(c.Eps >= 0) || math.IsInf(c.Eps, 0) {
			bad("lars: eps must not be negative, got %g", c.Eps)
		}
	},
	states: func(*Config) []string { return []string{"momentum"} },
	text: func(c *Config) string {
		return fmt.Sprintf("momentum=%g nesterov=%t trust=%g eps=%g", c.Momentum, c.Nesterov, c.Trust, c.Eps)
	},
	hyper: func(c *Config, g *Group, first float64, _ int64) numbers {
		nesterov := 0.0
		if c.Nesterov {
			nesterov = 1
		}
		return numbers{c.Momentum, g.WeightDecay, c.Trust, c.Eps, first, nesterov}
	},
	width:    8,
	op:       func(_ *Config, g *Group) npu.Op { return npu.Op{Kind: npu.LARS, Attrs: npu.Attrs{"skip": g.NoAdapt}} },
	launches: larsLaunches,
	adapts:   func(_ *Config, g *Group) bool { return !g.NoAdapt },
	adds:     true,
}

func unit(c *Config, what string, v float64, bad func(string, ...any)) {
	if !(v >= 0 && v < 1) {
		bad("%s: %s must lie in 0…1, 1 excluded, got %g", c.Rule, what, v)
	}
}
