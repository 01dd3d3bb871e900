package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Config describes an optimizer. Start from Default, then change fields as needed: zero is a value here, not a request
// for the default.
type Config struct {
	Rule string

	Momentum  float64 // SGD, LARS; 0 keeps no momentum memory in SGD
	Dampening float64 // SGD
	Nesterov  bool    // SGD, LARS
	Decoupled bool    // SGD: w -= lr·decay·w instead of decay added to the gradient

	Beta1, Beta2 float64 // Adam, AdamW, LAMB
	Eps          float64 // Adam, AdamW, LAMB: added outside the root. LARS: added to the denominator of the local rate
	Trust        float64 // LARS: the trust coefficient
	TrustClip    bool    // LAMB: no tensor moves by more than AdamW would move it (LAMBC)
	AlwaysAdapt  bool    // LAMB: adapt what is not decayed, too

	// EMA keeps a moving average of the weights; the zero value keeps none.
	EMA EMA

	// Groups are the parameter groups that a Tensor names by index. See DefaultGroups.
	Groups []Group
}

// Group is a set of parameters that share hyper-parameters.
type Group struct {
	Name        string
	LRMult      float64 // times the learning rate of the step
	WeightDecay float64
	NoAdapt     bool // LARS: plain momentum without decay or local rate; LAMB: AdamW (norms and biases)
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

// GroupOf assigns a tensor to one of DefaultGroups: tensors with fewer than two dimensions (scales and shifts of norms, biases)
// are not decayed.
func GroupOf(dims int) int {
	if dims < 2 {
		return NoDecay
	}
	return Decay
}

// Default is the customary configuration of a rule with DefaultGroups(decay): SGD momentum 0.9; Adam and AdamW betas
// 0.9, 0.999, eps 1e-8; LARS momentum 0.9, trust 0.001, eps 1e-9; LAMB as AdamW, eps 1e-6. An unknown rule is returned unchanged; Validate reports it.
func Default(rule string, decay float64) Config {
	c := Config{Rule: rule, Groups: DefaultGroups(decay)}
	if r, err := c.rule(); err == nil {
		r.preset(&c)
	}
	return c
}

// Validate returns all errors joined, or nil.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("optim: "+format, a...)) }
	if r, err := c.rule(); err != nil {
		errs = append(errs, err)
	} else {
		r.check(&c, bad)
	}
	c.validateGroups(bad)
	c.EMA.validate(bad)
	return errors.Join(errs...)
}

func (c Config) validateGroups(bad func(string, ...any)) {
	if len(c.Groups) == 0 {
		bad("no parameter groups\nhint: start from optim.Default, or set Groups to optim.DefaultGroups")
	}
	for i, g := range c.Groups {
		if !(g.LRMult >= 0) || math.IsInf(g.LRMult, 0) {
			bad("group %d (%s): the learning-rate factor must not be negative, got %g", i, g.Name, g.LRMult)
		}
		if !(g.WeightDecay >= 0) || math.IsInf(g.WeightDecay, 0) {
			bad("group %d (%s): weight decay must not be negative, got %g", i, g.Name, g.WeightDecay)
		}
	}
}

// States names the state vectors that the rule keeps, each as large as the weights. Memory planning needs them
// before a device is opened.
func (c Config) States() []string {
	r, err := c.rule()
	if err != nil {
		return nil // Validate reports it
	}
	return r.states(&c)
}

// RuleString describes the rule with its own settings: what String says, without averages and groups.
func (c Config) RuleString() string {
	r, err := c.rule()
	if err != nil {
		return fmt.Sprintf("unknown rule %q", c.Rule)
	}
	return c.Rule + " " + r.text(&c)
}

// String describes the optimizer in one line; equal configurations print equally, so it serves in fingerprints.
func (c Config) String() string {
	r, err := c.rule()
	if err != nil {
		return c.RuleString()
	}
	var b strings.Builder
	b.WriteString(c.RuleString() + c.EMA.text())
	for _, g := range c.Groups {
		fmt.Fprintf(&b, " %s{lr×%g decay=%g", g.Name, g.LRMult, g.WeightDecay)
		if g.NoAdapt && r.adapts != nil && !c.AlwaysAdapt {
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
