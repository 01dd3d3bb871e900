package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/gotrain/gotrain/optim"
)

// Format is the version of the layout of checkpoints that this package writes. It reads this one and older ones.
const Format = 1

// State is what a training is besides its tensors. Everything that decides about the coming steps must be in it or be computed from it.
type State struct {
	Format  int       `json:"format"` // set by Save
	Version string    `json:"version"`
	Time    time.Time `json:"time"`

	Step    int64 `json:"step"`    // optimizer steps done
	Epoch   int64 `json:"epoch"`   // epochs done
	Samples int64 `json:"samples"` // samples seen by all ranks together
	// DataSamples is the number of samples of the data set, by which a place in an epoch is found again in a larger or smaller one; 0: not known.
	DataSamples int64 `json:"data_samples,omitempty"`

	OptimizerSteps int64             `json:"optimizer_steps"` // those that were not skipped
	Scaler         optim.ScalerState `json:"scaler"`
	Sampler        json.RawMessage   `json:"sampler,omitempty"` // place in the data, as package data writes it
	RNG            map[string]string `json:"rng,omitempty"`     // state of every generator that is not a function of seed and step

	// Classes are the names of the classes by label, where the data have such names: what the outputs of the model mean.
	Classes []string `json:"classes,omitempty"`

	World        int `json:"world"` // ranks
	MicroBatch   int `json:"micro_batch"`
	Accumulation int `json:"accumulation"`

	// Settings are what decides about the numbers, by name, so that a run that resumes with others can say which.
	Settings map[string]string `json:"settings,omitempty"`
	// Fingerprints name what must be equal for an exact resume: "model", "buckets", "data", ….
	Fingerprints map[string]string  `json:"fingerprints,omitempty"`
	Recipe       string             `json:"recipe,omitempty"`  // as resolved and run
	Metrics      map[string]float64 `json:"metrics,omitempty"` // of an evaluation of these weights, those that are finite; Load takes them from EvaluationFile where that exists
	// EvaluationDue says that an evaluation of these weights was due when they were saved; it comes after the save, so it may be missing.
	EvaluationDue bool `json:"evaluation_due,omitempty"`

	// Extra is for state of consumers that this package does not know.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

func (s State) encode() ([]byte, error) {
	s.Format = Format
	if s.Time.IsZero() {
		s.Time = time.Now()
	}
	s.Time = s.Time.UTC().Truncate(time.Second)
	if s.Step < 0 || s.Epoch < 0 {
		return nil, fmt.Errorf("step %d and epoch %d must not be negative", s.Step, s.Epoch)
	}
	// JSON has no NaN, and a diverged metric must not cost the checkpoint.
	s.Metrics = finite(s.Metrics)
	raw, err := json.MarshalIndent(s, "", "  ")
	return append(raw, '\n'), err
}

// finite is a copy without the numbers that JSON cannot hold.
func finite(metrics map[string]float64) map[string]float64 {
	metrics = maps.Clone(metrics)
	maps.DeleteFunc(metrics, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	return metrics
}

func decodeState(raw []byte) (State, error) {
	var s State
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("%s: %w", StateFile, err)
	}
	if err := checkFormat(StateFile, s.Format); err != nil {
		return s, err
	}
	if s.Step < 0 || s.Epoch < 0 || s.Samples < 0 {
		return s, damaged("%s is of step %d, epoch %d, after %d samples", StateFile, s.Step, s.Epoch, s.Samples)
	}
	return s, nil
}

func checkFormat(file string, format int) error {
	if format < 1 {
		return errors.New(file + ": no format number")
	}
	if format > Format {
		return fmt.Errorf("%s: format %d is newer than the %d that this program reads\nhint: use the version of gotrain that wrote it, or a later one", file, format, Format)
	}
	return nil
}
