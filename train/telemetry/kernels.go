package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Kernels are the times of this rank's device within a step, in seconds from its beginning: medians over the first steps of a run. A plan for other
// networks starts from them.
type Kernels struct {
	Time       time.Time `json:"time"`
	Step       int64     `json:"step"`
	Steps      int       `json:"steps"` // that were measured
	Batch      int       `json:"batch"`
	Accumulate int       `json:"accumulate"`
	Device     string    `json:"device"`
	World      int       `json:"world"`
	Forward    float64   `json:"forward"`   // the loss is known
	Compute    float64   `json:"compute"`   // the backward pass is over
	Update     float64   `json:"update"`    // the optimizer's work
	Exposed    float64   `json:"exposed"`   // the device waited for gradients
	Took       float64   `json:"step_time"` // of the whole step
	Ready      []Ready   `json:"ready"`
}

// Ready says when the gradients of a bucket were complete.
type Ready struct {
	Param string  `json:"param"` // the last one
	At    float64 `json:"at"`
}

// Kind is "kernels".
func (Kernels) Kind() string { return "kernels" }

// ErrNoKernels says that a file has no times.
var ErrNoKernels = errors.New("no event has the times of kernels")

// ReadKernels returns the newest Kernels of a metrics.jsonl. A file of an older version has none: then the medians of its steps' compute_time and step_time
// are returned, without Forward, Update and Ready.
func ReadKernels(path string) (Kernels, error) {
	f, err := os.Open(path)
	if err != nil {
		return Kernels{}, err
	}
	defer f.Close()
	var newest *Kernels
	var compute, took, wait []float64
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20) // the recipe is in one line
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		var kind struct{ Event string }
		if len(line) == 0 || json.Unmarshal(line, &kind) != nil { // a line that was cut off
			continue
		}
		switch kind.Event {
		case "kernels":
			newest = new(Kernels)
			if err := json.Unmarshal(line, newest); err != nil {
				return Kernels{}, fmt.Errorf("%s:%d: %w", path, n, err)
			}
		case "step":
			var s struct {
				Compute float64 `json:"compute_time"`
				Took    float64 `json:"step_time"`
				Wait    float64 `json:"wait_time"`
			}
			if json.Unmarshal(line, &s) == nil && s.Took > 0 { // numbers that JSON lacks are strings
				compute, took, wait = append(compute, s.Compute), append(took, s.Took), append(wait, s.Wait)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return Kernels{}, fmt.Errorf("%s: %w", path, err)
	}
	if newest != nil {
		return *newest, nil
	}
	if len(took) == 0 {
		return Kernels{}, fmt.Errorf("%s: %w\nhint: give the metrics.jsonl of a run that did at least one step", path, ErrNoKernels)
	}
	return Kernels{Steps: len(took), Compute: Median(compute), Took: Median(took), Exposed: Median(wait)}, nil
}

// Median is the middle of numbers, 0 of none. It sorts them.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
