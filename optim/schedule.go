package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Schedule gives the learning rate of an optimizer step. It is a pure function of the step (0 is the first), so resuming
// needs no state. Its argument counts optimizer steps: not micro-batches, and not multiplied by the number of ranks.
type Schedule interface {
	LR(step int) float64
}

// The shapes of a schedule after its warm-up.
const (
	Constant = "constant" // stays at the peak
	Linear   = "linear"   // straight line from the peak to Min at Total
	Cosine   = "cosine"   // half a cosine from the peak to Min at Total (SGDR, arXiv 1608.03983, without restarts)
	StepDown = "step"     // times Gamma at each milestone
	WSD      = "wsd"      // constant, then over the last Decay steps down with 1-sqrt(t) (arXiv 2405.18392)
)

// Shapes lists the shapes in the order in which they are documented.
func Shapes() []string { return []string{Constant, Linear, Cosine, StepDown, WSD} }

// ScheduleConfig describes a schedule. All lengths are in optimizer steps, counted from the start of the run.
type ScheduleConfig struct {
	Shape      string  // one of Shapes; "" is Constant
	Peak       float64 // the learning rate at the end of the warm-up
	Warmup     int     // steps of linear warm-up: step s has Peak·(s+1)/Warmup, so step 0 is not wasted at 0
	Total      int     // steps of the whole run; Linear, Cosine and WSD need it
	MinRatio   float64 // the lowest rate after the warm-up, as a part of Peak
	Milestones []int   // StepDown: the steps at which the rate drops, rising
	Gamma      float64 // StepDown: the factor of a drop
	Decay      int     // WSD: the steps of the last part
}

// Validate returns all errors joined, or nil.
func (c ScheduleConfig) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("optim: schedule: "+format, a...)) }
	if c.Shape != "" && !slices.Contains(Shapes(), c.Shape) {
		bad("unknown shape %q\nhint: use one of %s", c.Shape, strings.Join(Shapes(), ", "))
	}
	if !(c.Peak > 0) || math.IsInf(c.Peak, 0) {
		bad("the peak learning rate must be above 0, got %g", c.Peak)
	}
	if c.Warmup < 0 {
		bad("warm-up must not be negative, got %d steps", c.Warmup)
	}
	if !(c.MinRatio >= 0 && c.MinRatio <= 1) {
		bad("the minimum ratio must lie in 0…1, got %g", c.MinRatio)
	}
	switch c.Shape {
	case Linear, Cosine, WSD:
		if c.Total <= 0 {
			bad("shape %q needs the total number of steps, got %d", c.Shape, c.Total)
		} else if c.Warmup >= c.Total {
			bad("the warm-up of %d steps is not shorter than the run of %d steps\nhint: shorten the warm-up or train longer", c.Warmup, c.Total)
		}
	}
	if c.Shape == WSD && c.Total > 0 && (c.Decay < 1 || c.Decay > c.Total-max(c.Warmup, 0)) {
		bad("the decay of wsd must lie in 1…%d steps (total less warm-up), got %d", c.Total-max(c.Warmup, 0), c.Decay)
	}
	if c.Shape == StepDown {
		c.validateStep(bad)
	}
	return errors.Join(errs...)
}

func (c ScheduleConfig) validateStep(bad func(string, ...any)) {
	if !(c.Gamma > 0 && c.Gamma <= 1) {
		bad("gamma must be above 0 and at most 1, got %g", c.Gamma)
	}
	if len(c.Milestones) == 0 {
		bad("shape %q needs at least one milestone", c.Shape)
	}
	last := 0
	for i, m := range c.Milestones {
		if m <= last && i > 0 || m < 1 {
			bad("milestones must be at least 1 and increasing, got %v", c.Milestones)
			return
		}
		last = m
	}
}

// New checks the description and returns the schedule.
func (c ScheduleConfig) New() (Schedule, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Milestones = slices.Clone(c.Milestones)
	return schedule{c}, nil
}

type schedule struct{ c ScheduleConfig }

// LR evaluates the closed form.
func (s schedule) LR(step int) float64 {
	c := &s.c
	if step = max(step, 0); step < c.Warmup {
		return c.Peak * float64(step+1) / float64(c.Warmup)
	}
	return c.Peak * max(c.factor(step), c.MinRatio)
}

// factor is the rate as a part of the peak, after the warm-up.
func (c *ScheduleConfig) factor(step int) float64 {
	span := 1 - c.MinRatio
	switch c.Shape {
	case Linear:
		return c.MinRatio + span*(1-part(step, c.Warmup, c.Total))
	case Cosine:
		return c.MinRatio + span*0.5*(1+math.Cos(math.Pi*part(step, c.Warmup, c.Total)))
	case WSD:
		return c.MinRatio + span*(1-math.Sqrt(part(step, c.Total-c.Decay, c.Total)))
	case StepDown:
		drops := 0
		for _, m := range c.Milestones {
			if step >= m {
				drops++
			}
		}
		return math.Pow(c.Gamma, float64(drops))
	}
	return 1
}

// part is the progress of step from a to b, within 0…1.
func part(step, a, b int) float64 {
	return min(max(float64(step-a)/float64(b-a), 0), 1)
}

// String describes the schedule in one line, for the header of a run.
func (s schedule) String() string {
	c := s.c
	shape := c.Shape
	if shape == "" {
		shape = Constant
	}
	out := fmt.Sprintf("%s peak=%g warmup=%d", shape, c.Peak, c.Warmup)
	if c.Total > 0 {
		out += fmt.Sprintf(" total=%d", c.Total)
	}
	if c.MinRatio > 0 {
		out += fmt.Sprintf(" min=%g", c.MinRatio*c.Peak)
	}
	switch shape {
	case StepDown:
		out += fmt.Sprintf(" milestones=%v gamma=%g", c.Milestones, c.Gamma)
	case WSD:
		out += fmt.Sprintf(" decay=%d", c.Decay)
	}
	return out
}

// LinearScale is the learning rate for a global batch by the linear rule of Goyal et al. (arXiv 1706.02677): base·batch/reference.
func LinearScale(base float64, batch, reference int) float64 {
	return base * float64(batch) / float64(reference)
}

// SqrtScale is the square-root rule, common with Adam: base·√(batch/reference).
func SqrtScale(base float64, batch, reference int) float64 {
	return base * math.Sqrt(float64(batch)/float64(reference))
}
