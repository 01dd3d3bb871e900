package augment

import (
	"errors"
	"strings"

	"github.com/gotrain/gotrain/train/data"
)

// Pipeline is all that happens to one picture after cropping, resizing and flipping: the policy, then the jitter, then (on the normalised values) the
// erasing. The zero value changes nothing.
type Pipeline struct {
	Policy Policy // nil: none
	Jitter Jitter
	Erase  Erase
	// Fill is the colour beyond the border when a picture is moved. timm uses the mean colour, torchvision black.
	Fill [3]byte
}

// Empty reports whether the pipeline changes nothing.
func (p Pipeline) Empty() bool { return p.Policy == nil && p.Jitter == (Jitter{}) && p.Erase.Prob == 0 }

// Check reports what is wrong with the parameters, or with the limit of instruction sets in the environment.
func (p Pipeline) Check() error {
	err := errors.Join(p.Jitter.Check(), p.Erase.Check(), checkISA())
	if p.Policy != nil {
		err = errors.Join(p.Policy.Check(), err)
	}
	return err
}

// Pixels changes the bytes of a picture.
func (p Pipeline) Pixels(r *data.Rand, pix *Pixels, s *Scratch) {
	s.steps = s.steps[:0]
	if p.Policy != nil {
		s.steps = p.Policy.Draw(r, pix.W, pix.H, s.steps)
	}
	if p.Jitter != (Jitter{}) {
		s.steps = p.Jitter.Draw(r, pix.W, pix.H, s.steps)
	}
	for _, x := range s.steps {
		ops[x.Op].Apply(pix, s, x.Arg, p.Fill)
	}
}

// Values changes the normalised values of a picture: c planes of h × w.
func (p Pipeline) Values(r *data.Rand, planes []float32, c, h, w int) {
	p.Erase.Apply(r, planes, c, h, w)
}

// String describes the pipeline for a plan.
func (p Pipeline) String() string {
	var parts []string
	if p.Policy != nil {
		parts = append(parts, p.Policy.String())
	}
	if p.Jitter != (Jitter{}) {
		parts = append(parts, p.Jitter.String())
	}
	if p.Erase.Prob > 0 {
		parts = append(parts, p.Erase.String())
	}
	return strings.Join(parts, "; ")
}
