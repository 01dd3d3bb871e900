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

// Format is the version of the checkpoint layout that this package writes. It reads this version and older ones.
const Format = 1

// State is the state of a training run besides its tensors. Everything that affects later steps must be in it or be computed from it.
type State struct {
	Format  int       `json:"format"` // set by Save
	Version string    `json:"version"`
	Time    time.Time `json:"time"`

	Step    int64 `json:"step"`    // optimizer steps done
	Epoch   int64 `json:"epoch"`   // epochs done
	Samples int64 `json:"samples"` // samples seen by all ranks together
	// DataSamples is the number of samples of the data set, used to map a position in an epoch to a larger or smaller data set; 0: unknown.
	DataSamples int64 `json:"data_samples,omitempty"`

	OptimizerSteps int64             `json:"optimizer_steps"` // without skipped steps
	Scaler         optim.ScalerState `json:"scaler"`
	Sampler        json.RawMessage   `json:"sampler,omitempty"` // position in the data, as package data writes it
	RNG            map[string]string `json:"rng,omitempty"`     // state of every generator that is not a function of seed and step

	// Classes are the names of the classes by label, if the data have such names: the meaning of the model's outputs.
	Classes []string `json:"classes,omitempty"`

	// Network describes the network and what it reads; nil: a version of gotrain before such descriptions wrote the checkpoint.
	Network *Network `json:"network,omitempty"`

	// Buckets are the sizes of gradient buckets, if the run has chosen them; nil: its configuration has them.
	Buckets *Buckets `json:"buckets,omitempty"`

	// Kernels says how the run computes its network, if it has chosen that; nil: the device's default.
	Kernels *Kernels `json:"kernels,omitempty"`

	// ResidualsBy says which ranks share the tensors of residuals, if any do; see package train.
	ResidualsBy string `json:"residuals_by,omitempty"`

	World        int `json:"world"` // ranks
	MicroBatch   int `json:"micro_batch"`
	Accumulation int `json:"accumulation"`

	// Settings are the settings that affect results, by name, so that a resumed run can report those that changed.
	Settings map[string]string `json:"settings,omitempty"`
	// Fingerprints name what must be equal for an exact resume: "model", "buckets", "data", ….
	Fingerprints map[string]string `json:"fingerprints,omitempty"`
	Recipe       string            `json:"recipe,omitempty"` // fully resolved
	// Metrics are the finite results of an evaluation of these weights; Load prefers those in EvaluationFile.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Arrays are its results that are more than a number.
	Arrays map[string]Array `json:"arrays,omitempty"`
	// EvaluationDue means that an evaluation of these weights was due when they were saved; it follows the save, so it may be missing.
	EvaluationDue bool `json:"evaluation_due,omitempty"`

	// Best is what was found out about evaluations so far, without the one that follows this checkpoint; nil: nothing.
	Best *Best `json:"best,omitempty"`

	// Extra is for state of callers that this package does not know.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// Array holds numbers in row-major order.
type Array struct {
	Shape  []int  `json:"shape"`
	Values []byte `json:"float64"` // little-endian; JSON has them in base64, in one line
}

// Best is the best evaluation so far, and how long it has been the best.
type Best struct {
	Metric string  `json:"metric"` // the result that is compared, such as "loss"
	Value  float64 `json:"value"`
	Step   int64   `json:"step"`   // when it was found
	Last   int64   `json:"last"`   // the step of the evaluation that was compared last
	Waited int     `json:"waited"` // evaluations since then without a better one
	// Kept is the result of the checkpoint that rotation keeps, and KeptStep its step; 0: none is kept.
	Kept     float64 `json:"kept,omitempty"`
	KeptStep int64   `json:"kept_step,omitempty"`
	Drops    int     `json:"drops,omitempty"` // how often the learning rate was lowered because none was better
	Since    int     `json:"since,omitempty"` // evaluations without a better one since it was lowered
}

// Buckets are limits of the size of gradient buckets, in bytes.
type Buckets struct {
	Cap   int64 `json:"cap"`
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Kernels is what was chosen by measurement and changes results by rounding. Its values are those of the device.
type Kernels struct {
	Algorithms map[string]string `json:"algorithms,omitempty"` // by convolution
	Products   string            `json:"products,omitempty"`   // of bf16: native or f32; "" from a version that had no choice
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
	// JSON has no NaN, and a diverged metric must not lose the checkpoint.
	s.Metrics = finite(s.Metrics)
	raw, err := json.MarshalIndent(s, "", "  ")
	return append(raw, '\n'), err
}

// finite returns a copy without the numbers that JSON cannot represent.
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
		return fmt.Errorf("%s: format %d is newer than the %d that this program reads\nhint: use the version of gotrain that wrote it, or a later one",
			file, format, Format)
	}
	return nil
}
