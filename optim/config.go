package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The rules.
const (
	SGD   = "sgd"   // stochastic gradient descent; momentum, Nesterov, dampening
	AdamW = "adamw" // Adam with decoupled decay (arXiv 1711.05101)
	Adam  = "adam"  // Adam with the decay added to the gradient, as torch.optim.Adam (arXiv 1412.6980)
	LARS  = "lars"  // layer-wise adaptive rates (arXiv 1708.03888), for very large batches
)

// Rules lists the rules in the order in which they are documented.
func Rules() []string { return []string{SGD, AdamW, Adam, LARS} }

// Config describes an optimizer. Start from Default, then change what you want: a zero is a value here, not a wish
// for the default.
type Config struct {
	Rule string

	Momentum  float64 // SGD, LARS; 0 keeps no momentum memory in SGD
	Dampening float64 // SGD
	Nesterov  bool    // SGD, LARS
	Decoupled bool    // SGD: w -= lr·decay·w instead of decay added to the gradient

	Beta1, Beta2 float64 // Adam, AdamW
	Eps          float64 // Adam, AdamW: added outside the root. LARS: added to the denominator of the local rate
	Trust        float64 // LARS: the trust coefficient

	// Groups are the parameter groups that a Tensor names by index. See DefaultGroups.
	Groups []Group
}

// Group is a set of parameters that share hyper-parameters.
type Group struct {
	Name        string
	LRMult      float64 // times the learning rate of the step
	WeightDecay float64
	NoAdapt     bool // LARS: plain momentum without decay or local rate (norms and biases)
}

// The two groups that DefaultGroups makes.
const (
	Decay   = 0 // matrices and filters
	NoDecay = 1 // norms and biases
)

// DefaultGroups are the usual two: decay for weights of two or more dimensions, none for norms and biases.
func DefaultGroups(decay float64) []Group {
	return []Group{
		Decay:   {Name: "decay", LRMult: 1, WeightDecay: decay},
		NoDecay: {Name: "no_decay", LRMult: 1, NoAdapt: true},
	}
}

// GroupOf is the rule that goes with DefaultGroups: tensors of fewer than two dimensions (gains and shifts of norms, biases)
// are not decayed.
func GroupOf(dims int) int {
	if dims < 2 {
		return NoDecay
	}
	return Decay
}

// Default is the customary configuration of a rule with DefaultGroups(decay): SGD momentum 0.9; Adam and AdamW betas
// 0.9, 0.999, eps 1e-8; LARS momentum 0.9, trust 0.001, eps 1e-9. An unknown rule is returned unchanged; Validate reports it.
func Default(rule string, decay float64) Config {
	c := Config{Rule: rule, Groups: DefaultGroups(decay)}
	switch rule {
	case SGD:
		c.Momentum = 0.9
	case AdamW, Adam:
		c.Beta1, c.Beta2, c.Eps = 0.9, 0.999, 1e-8
	case LARS:
		c.Momentum, c.Trust, c.Eps = 0.9, 0.001, 1e-9
	}
	return c
}

// Validate returns every fault at once, joined, or nil.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("optim: "+format, a...)) }
	unit := func(what string, v float64) {
		if !(v >= 0 && v < 1) {
			bad("%s: %s must lie in 0…1, 1 excluded, got %g", c.Rule, what, v)
		}
	}
	switch c.Rule {
	case SGD:
		unit("momentum", c.Momentum)
		if !(c.Dampening >= 0 && c.Dampening <= 1) {
			bad("sgd: dampening must lie in 0…1, got %g", c.Dampening)
		}
		if c.Nesterov && (c.Momentum == 0 || c.Dampening != 0) {
			bad("sgd: nesterov needs a momentum and no dampening, got momentum %g, dampening %g", c.Momentum, c.Dampening)
		}
	case AdamW, Adam:
		unit("beta1", c.Beta1)
		unit("beta2", c.Beta2)
		if !(c.Eps > 0) || math.IsInf(c.Eps, 0) {
			bad("%s: eps must be above 0, got %g", c.Rule, c.Eps)
		}
	case LARS:
		unit("momentum", c.Momentum)
		if !(c.Trust > 0) || math.IsInf(c.Trust, 0) {
			bad("lars: trust must be above 0, got %g", c.Trust)
		}
		if !(c.Eps >= 0) || math.IsInf(c.Eps, 0) {
			bad("lars: eps must not be negative, got %g", c.Eps)
		}
	default:
		bad("unknown rule %q\nhint: one of %s", c.Rule, strings.Join(Rules(), ", "))
	}
	c.validateGroups(bad)
	return errors.Join(errs...)
}

func (c Config) validateGroups(bad func(string, ...any)) {
	if len(c.Groups) == 0 {
		bad("no parameter groups\nhint: start from optim.Default, or set Groups to optim.DefaultGroups")
	}
	for i, g := range c.Groups {
		if !(g.LRMult >= 0) || math.IsInf(g.LRMult, 0) {
			bad("group %d (%s): the factor of the learning rate must not be negative, got %g", i, g.Name, g.LRMult)
		}
		if !(g.WeightDecay >= 0) || math.IsInf(g.WeightDecay, 0) {
			bad("group %d (%s): weight decay must not be negative, got %g", i, g.Name, g.WeightDecay)
		}
	}
}

// States names the state vectors that the rule keeps, each as large as the weights: what a plan of memory needs to
// know before there is a device.
func (c Config) States() []string {
	switch c.Rule {
	case SGD:
		if c.Momentum == 0 {
			return nil
		}
		return []string{"momentum"}
	case LARS:
		return []string{"momentum"}
	case AdamW, Adam:
		return []string{"exp_avg", "exp_avg_sq"}
	}
	return nil
}

// String describes the optimizer in one line; equal configurations print equally, so it serves in fingerprints.
func (c Config) String() string {
	var b strings.Builder
	b.WriteString(c.Rule)
	switch c.Rule {
	case SGD:
		fmt.Fprintf(&b, " momentum=%g dampening=%g nesterov=%t decoupled=%t", c.Momentum, c.Dampening, c.Nesterov, c.Decoupled)
	case LARS:
		fmt.Fprintf(&b, " momentum=%g nesterov=%t trust=%g eps=%g", c.Momentum, c.Nesterov, c.Trust, c.Eps)
	default:
		fmt.Fprintf(&b, " betas=%g,%g eps=%g", c.Beta1, c.Beta2, c.Eps)
	}
	for _, g := range c.Groups {
		fmt.Fprintf(&b, " %s{lr×%g decay=%g", g.Name, g.LRMult, g.WeightDecay)
		if g.NoAdapt && c.Rule == LARS {
			b.WriteString(" no_adapt")
		}
		b.WriteByte('}')
	}
	return b.String()
}

func (c Config) clone() Config {
	c.Groups = slices.Clone(c.Groups)
	return c
}
