package augment

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/train/data"
)

// Policy chooses operations for a picture.
type Policy interface {
	// Draw appends the operations to apply to a picture of w × h pixels, in this order.
	Draw(r *data.Rand, w, h int, steps []Step) []Step
	// Check reports what is wrong with the parameters.
	Check() error
	// String describes the policy for a plan, such as "RandAugment, 2 operations of magnitude 9".
	String() string
}

// Step is an operation with its argument.
type Step struct {
	Op  string
	Arg float64
}

// choice is one entry of a space of operations: the argument for a magnitude from 0 to 1.
type choice struct {
	op     string
	arg    func(m float64, w, h int) float64 // nil: none
	signed bool                              // the argument is negative half of the time
	around bool                              // a signed distance from 1: an enhancement
}

// draw gives the argument of an entry.
func (c *choice) draw(r *data.Rand, m float64, w, h int) float64 {
	if c.arg == nil {
		return 0
	}
	v := c.arg(m, w, h)
	if (c.signed || c.around) && r.Bool(0.5) {
		v = -v
	}
	if c.around {
		v++
	}
	return v
}

func upTo(limit float64) func(float64, int, int) float64 {
	return func(m float64, _, _ int) float64 { return m * limit }
}

// timmSpace is timm's "rand" with increasing severity (rand-…-inc1).
var timmSpace = []choice{
	{op: "AutoContrast"}, {op: "Equalize"}, {op: "Invert"},
	{op: "Rotate", arg: upTo(30), signed: true},
	{op: "Posterize", arg: func(m float64, _, _ int) float64 { return 4 - math.Trunc(m*4) }},
	{op: "Solarize", arg: func(m float64, _, _ int) float64 { return 256 - min(256, math.Trunc(m*256)) }},
	{op: "SolarizeAdd", arg: func(m float64, _, _ int) float64 { return min(128, math.Trunc(m*110)) }},
	{op: "Color", arg: upTo(0.9), around: true}, {op: "Contrast", arg: upTo(0.9), around: true},
	{op: "Brightness", arg: upTo(0.9), around: true}, {op: "Sharpness", arg: upTo(0.9), around: true},
	{op: "ShearX", arg: upTo(0.3), signed: true}, {op: "ShearY", arg: upTo(0.3), signed: true},
	{op: "TranslateXRel", arg: upTo(0.45), signed: true}, {op: "TranslateYRel", arg: upTo(0.45), signed: true},
}

// visionSpace is torchvision's RandAugment and, wide, its TrivialAugmentWide.
func visionSpace(wide bool) []choice {
	shear, turn, enhance, bits := 0.3, 30.0, 0.9, 4.0
	x := func(m float64, w, _ int) float64 { return math.Trunc(m * 150 / 331 * float64(w)) }
	y := func(m float64, _, h int) float64 { return math.Trunc(m * 150 / 331 * float64(h)) }
	if wide {
		shear, turn, enhance, bits = 0.99, 135, 0.99, 6
		x = func(m float64, _, _ int) float64 { return math.Trunc(m * 32) }
		y = x
	}
	return []choice{
		{op: "Identity"},
		{op: "ShearX", arg: upTo(shear), signed: true}, {op: "ShearY", arg: upTo(shear), signed: true},
		{op: "TranslateX", arg: x, signed: true}, {op: "TranslateY", arg: y, signed: true},
		{op: "Rotate", arg: upTo(turn), signed: true},
		{op: "Brightness", arg: upTo(enhance), around: true}, {op: "Color", arg: upTo(enhance), around: true},
		{op: "Contrast", arg: upTo(enhance), around: true}, {op: "Sharpness", arg: upTo(enhance), around: true},
		{op: "Posterize", arg: func(m float64, _, _ int) float64 { return 8 - math.RoundToEven(m*bits) }},
		{op: "Solarize", arg: func(m float64, _, _ int) float64 { return 255 * (1 - m) }},
		{op: "AutoContrast"}, {op: "Equalize"},
	}
}

var narrow, wide = visionSpace(false), visionSpace(true)

// RandAugment applies a few operations, drawn with replacement, all with one magnitude (Cubuk et al., arXiv 1909.13719).
type RandAugment struct {
	Ops       int     // operations a picture; 0 means 2
	Magnitude float64 // 0 to 10; torchvision's 0 to 30, divided by 3
	Std       float64 // standard deviation of the magnitude, drawn for each operation: timm's mstd
	Prob      float64 // probability of each operation; 0 means 1. timm's default is 0.5
	// Vision takes torchvision's operations and their ranges; otherwise they are timm's, with increasing severity (rand-mM-mstdS-inc1).
	Vision bool
}

// Check refuses what is out of range.
func (a RandAugment) Check() error {
	if a.Ops < 0 || a.Ops > 32 || !(a.Magnitude >= 0 && a.Magnitude <= 10) || !(a.Std >= 0 && a.Std <= 10) || !(a.Prob >= 0 && a.Prob <= 1) {
		return fmt.Errorf("augment: invalid RandAugment %+v\nhint: 1 to 32 operations, magnitude and its deviation from 0 to 10, probability from 0 to 1", a)
	}
	return nil
}

// Draw draws the operations.
func (a RandAugment) Draw(r *data.Rand, w, h int, steps []Step) []Step {
	space := timmSpace
	if a.Vision {
		space = narrow
	}
	n, p := a.Ops, a.Prob
	if n == 0 {
		n = 2
	}
	if p == 0 {
		p = 1
	}
	for range n {
		c := &space[r.IntN(len(space))]
		if p < 1 && !r.Bool(p) {
			continue
		}
		m := a.Magnitude
		if a.Std > 0 {
			m += float64(a.Std * normal(r))
		}
		steps = append(steps, Step{c.op, c.draw(r, max(0, min(m, 10))/10, w, h)})
	}
	return steps
}

func (a RandAugment) String() string {
	s, n := "RandAugment", a.Ops
	if n == 0 {
		n = 2
	}
	if a.Vision {
		s += " (torchvision's)"
	}
	s += fmt.Sprintf(", %d operations of magnitude %g", n, a.Magnitude)
	if a.Std > 0 {
		s += fmt.Sprintf(" ± %g", a.Std)
	}
	if a.Prob > 0 && a.Prob < 1 {
		s += fmt.Sprintf(", each with probability %g", a.Prob)
	}
	return s
}

// TrivialAugment applies one operation with a random magnitude out of 31: TrivialAugment Wide (Müller and Hutter, arXiv 2103.10158) with torchvision's
// operations and ranges. It has no parameters.
type TrivialAugment struct{}

// Check finds nothing to refuse.
func (TrivialAugment) Check() error { return nil }

// Draw draws the operation.
func (TrivialAugment) Draw(r *data.Rand, w, h int, steps []Step) []Step {
	c := &wide[r.IntN(len(wide))]
	return append(steps, Step{c.op, c.draw(r, float64(r.IntN(31))/30, w, h)})
}

func (TrivialAugment) String() string { return "TrivialAugment" }
