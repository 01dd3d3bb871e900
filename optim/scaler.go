package optim

import (
	"errors"
	"fmt"
	"math"
)

// ScalerConfig describes dynamic loss scaling (arXiv 1710.03740). Start from DefaultScaler.
type ScalerConfig struct {
	Dynamic    bool    // false: the scale stays Init; bad steps are still skipped and counted
	Init       float64 // first scale
	Growth     float64 // factor after Interval good steps in a row
	Backoff    float64 // factor after a bad step
	Interval   int     // good steps in a row before the scale grows
	Floor      float64 // the scale never falls below; a bad step at the floor ends the training
	Ceiling    float64 // the scale never grows above
	Hysteresis int     // bad steps tolerated before the scale drops; 1: the first one lowers it
	MaxSkips   int     // bad steps in a row that end the training; 0 = no limit
}

// DefaultScaler has PyTorch's numbers: 2^16, ×2 after 2000 good steps, ×0.5 after a bad one; with a floor of 1 and at most 50
// bad steps in a row, so that a run that cannot recover ends instead of turning into noise.
func DefaultScaler() ScalerConfig {
	return ScalerConfig{Dynamic: true, Init: 1 << 16, Growth: 2, Backoff: 0.5, Interval: 2000, Floor: 1, Ceiling: 1 << 32, Hysteresis: 1, MaxSkips: 50}
}

// NoScaler keeps the scale at 1 and only counts bad steps: for f32 and bf16. maxSkips bad steps in a row end the training (0 = no limit).
func NoScaler(maxSkips int) ScalerConfig {
	return ScalerConfig{Init: 1, MaxSkips: maxSkips}
}

// Validate returns all errors joined, or nil.
func (c ScalerConfig) Validate() error {
	var errs []error
	need := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("optim: loss scale: "+format, a...))
		}
	}
	need(c.Init > 0 && !math.IsInf(c.Init, 0), "the first scale must be above 0, got %g", c.Init)
	need(c.MaxSkips >= 0, "the limit on skipped steps must not be negative, got %d", c.MaxSkips)
	if c.Dynamic {
		need(c.Growth > 1 && !math.IsInf(c.Growth, 0), "growth must be above 1, got %g", c.Growth)
		need(c.Backoff > 0 && c.Backoff < 1, "backoff must lie between 0 and 1, got %g", c.Backoff)
		need(c.Interval > 0, "the interval must be at least 1 step, got %d", c.Interval)
		need(c.Hysteresis > 0, "hysteresis must be at least 1, got %d", c.Hysteresis)
		need(c.Floor > 0 && c.Floor <= c.Init, "the floor must be above 0 and at most the first scale %g, got %g", c.Init, c.Floor)
		need(c.Ceiling >= c.Init && !math.IsInf(c.Ceiling, 0), "the ceiling must be at least the first scale %g, got %g", c.Init, c.Ceiling)
	}
	return errors.Join(errs...)
}

// String describes the scaling in one line; equal configurations print equally, so it serves in fingerprints.
func (c ScalerConfig) String() string {
	if !c.Dynamic {
		return fmt.Sprintf("loss scale %g, %d bad steps", c.Init, c.MaxSkips)
	}
	return fmt.Sprintf("loss scale from %g, ×%g after %d good steps, ×%g after %d bad, %g…%g, %d bad steps",
		c.Init, c.Growth, c.Interval, c.Backoff, c.Hysteresis, c.Floor, c.Ceiling, c.MaxSkips)
}

// ScalerState is what a checkpoint keeps.
type ScalerState struct {
	Dynamic    bool    `json:"dynamic,omitempty"`
	Scale      float64 `json:"scale"`
	Good       int     `json:"good"`       // good steps since the last change
	Hysteresis int     `json:"hysteresis"` // bad steps still tolerated
	InARow     int     `json:"in_a_row"`   // bad steps in a row
	Skipped    int64   `json:"skipped"`    // bad steps so far
}

// Scaler is the state machine of loss scaling. It does no arithmetic on tensors: the trainer multiplies the gradient of
// the loss by Scale, divides by it in the gradient scale of the optimizer, and tells Update what the ranks agreed on.
type Scaler struct {
	cfg ScalerConfig
	st  ScalerState
}

// New checks the description and returns a scaler in its first state.
func (c ScalerConfig) New() (*Scaler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Scaler{cfg: c, st: c.first()}, nil
}

// first is the state before the first step.
func (c ScalerConfig) first() ScalerState {
	if !c.Dynamic {
		return ScalerState{Scale: c.Init}
	}
	return ScalerState{Dynamic: true, Scale: c.Init, Hysteresis: c.Hysteresis}
}

// Scale is the factor for the loss of the next step.
func (s *Scaler) Scale() float64 { return s.st.Scale }

// State returns a copy of the state, for checkpoints.
func (s *Scaler) State() ScalerState { return s.st }

// Restore continues from a checkpoint. One of a run with a fixed scale, or without scaling, knows no dynamic scale: a dynamic one then starts anew.
func (s *Scaler) Restore(st ScalerState) error {
	if !(st.Scale > 0) || math.IsInf(st.Scale, 0) || st.Good < 0 || st.InARow < 0 || st.Skipped < 0 {
		return fmt.Errorf("optim: loss scale: the checkpoint has an invalid state: %+v", st)
	}
	if s.cfg.Dynamic && (st.Dynamic || st.Hysteresis > 0) { // older checkpoints lack Dynamic
		st.Dynamic = true
		st.Hysteresis = min(st.Hysteresis, s.cfg.Hysteresis)
		st.Scale = min(max(st.Scale, s.cfg.Floor), s.cfg.Ceiling)
	} else {
		first := s.cfg.first()
		first.InARow, first.Skipped = st.InARow, st.Skipped
		st = first
	}
	s.st = st
	return nil
}

// ErrDiverged is wrapped by errors of Update: training cannot recover, and further steps would train on noise.
var ErrDiverged = errors.New("gradients stay non-finite")

// Update records whether the gradients of one step are non-finite, on which all ranks must have agreed, and reports whether to skip
// the step: no optimizer step, no advance of the schedule. An error (ErrDiverged) means that training should end.
func (s *Scaler) Update(nonFinite bool) (skip bool, err error) {
	st := &s.st
	if !nonFinite {
		st.InARow = 0
		s.grow()
		return false, nil
	}
	st.Skipped++
	st.InARow++
	st.Good = 0
	if s.cfg.MaxSkips > 0 && st.InARow >= s.cfg.MaxSkips {
		smaller := ""
		if st.Scale != 1 {
			smaller = "use a smaller loss scale, "
		}
		return true, fmt.Errorf(
			"optim: %w: %d steps in a row, loss scale %g\nhint: %slower the learning rate, clip gradients, or check the data for bad samples",
			ErrDiverged,
			st.InARow,
			st.Scale,
			smaller,
		)
	}
	if !s.cfg.Dynamic {
		return true, nil
	}
	if st.Hysteresis--; st.Hysteresis > 0 {
		return true, nil
	}
	if st.Scale <= s.cfg.Floor {
		return true, fmt.Errorf(
			"optim: %w: loss scale is at its floor %g\nhint: values overflow even without scaling; lower the learning rate, or compute in bf16 or f32",
			ErrDiverged,
			s.cfg.Floor,
		)
	}
	st.Scale = max(st.Scale*s.cfg.Backoff, s.cfg.Floor)
	return true, nil
}

// grow counts a good step and raises the scale after Interval of them. As in Megatron, only growth resets the hysteresis.
func (s *Scaler) grow() {
	if !s.cfg.Dynamic {
		return
	}
	if s.st.Good++; s.st.Good >= s.cfg.Interval {
		s.st.Good = 0
		s.st.Hysteresis = s.cfg.Hysteresis
		s.st.Scale = min(s.st.Scale*s.cfg.Growth, s.cfg.Ceiling)
	}
}
