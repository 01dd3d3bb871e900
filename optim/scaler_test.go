package optim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// trace runs a scaler over a string of steps (. good, x bad) and prints the scale after each.
func trace(t *testing.T, c ScalerConfig, steps string) (string, error) {
	t.Helper()
	s, err := c.New()
	must(t, err)
	var out []string
	for i, r := range steps {
		if i == len(steps)/2 { // a resume in the middle must change nothing
			raw, err := json.Marshal(s.State())
			must(t, err)
			var st ScalerState
			must(t, json.Unmarshal(raw, &st))
			s, err = c.New()
			must(t, err)
			must(t, s.Restore(st))
		}
		skip, err := s.Update(r == 'x')
		if skip != (r == 'x') {
			t.Errorf("step %d (%c): skip is %t", i, r, skip)
		}
		if err != nil {
			return strings.Join(out, " "), err
		}
		out = append(out, fmt.Sprint(s.Scale()))
	}
	return strings.Join(out, " "), nil
}

func TestScaler(t *testing.T) {
	small := ScalerConfig{Dynamic: true, Init: 8, Growth: 2, Backoff: 0.5, Interval: 3, Floor: 2, Ceiling: 16, Hysteresis: 1}
	patient := small
	patient.Hysteresis = 2
	limited := small
	limited.MaxSkips = 2
	fixed := NoScaler(3)
	for _, c := range []struct {
		name  string
		cfg   ScalerConfig
		steps string
		want  string
		dies  string
	}{
		{"grows after the interval", small, "...", "8 8 16", ""},
		{"stops at the ceiling", small, "......", "8 8 16 16 16 16", ""},
		{"a bad step starts the count anew", small, "..x...", "8 8 4 4 4 8", ""},
		{"dies at the floor", small, "xxx", "4 2", "floor 2"},
		{"recovers before the floor", small, "xx...", "4 2 2 2 4", ""},
		{"bears one", patient, "x.x", "8 8 4", ""},
		{"growth renews the patience", patient, "x...x", "8 8 8 16 16", ""},
		{"patience once spent stays spent", patient, "xx.x", "8 4 4 2", ""},
		{"gives up after a row", limited, "x.xx", "4 4 2", "2 steps in a row"},
		{"fixed scale still skips and counts", fixed, "xx.xxx", "1 1 1 1 1", "3 steps in a row"},
	} {
		got, err := trace(t, c.cfg, c.steps)
		if got != c.want {
			t.Errorf("%s: scales %s, want %s", c.name, got, c.want)
		}
		if c.dies == "" && err != nil || c.dies != "" && (!errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), c.dies)) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.dies)
		}
	}
}

// With its defaults a scaler whose gradients are never finite must end the training after 17 steps at the latest, not keep falling.
func TestScalerNeverFallsForEver(t *testing.T) {
	s, err := DefaultScaler().New()
	must(t, err)
	for i := range 60 {
		if _, err := s.Update(true); err != nil {
			if i != 16 {
				t.Errorf("ended after %d bad steps, want 17 (2^16 to the floor 1)", i+1)
			}
			return
		}
	}
	t.Error("60 bad steps, and no end")
}

func TestScalerFaults(t *testing.T) {
	_, err := ScalerConfig{Dynamic: true, MaxSkips: -1}.New()
	for _, want := range []string{"first scale", "limit on skipped", "growth", "backoff", "interval", "hysteresis", "floor"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q: %v", want, err)
		}
	}
	s, _ := DefaultScaler().New()
	if err := s.Restore(ScalerState{Scale: -1}); err == nil {
		t.Error("a negative scale is restored")
	}
}

// A checkpoint of a run with another kind of scaling, or from before the state said which, is continued sensibly.
func TestScalerRestoresOtherStates(t *testing.T) {
	dynamic, fixed := DefaultScaler(), ScalerConfig{Init: 512}
	for _, c := range []struct {
		name, raw string
		into      ScalerConfig
		want      ScalerState
	}{
		{"dynamic", `{"dynamic":true,"scale":1,"good":7,"hysteresis":-3,"in_a_row":2,"skipped":19}`, dynamic,
			ScalerState{Dynamic: true, Scale: 1, Good: 7, Hysteresis: -3, InARow: 2, Skipped: 19}},
		{"dynamic, older", `{"scale":4096,"good":7,"hysteresis":1,"in_a_row":0,"skipped":4}`, dynamic,
			ScalerState{Dynamic: true, Scale: 4096, Good: 7, Hysteresis: 1, Skipped: 4}},
		{"dynamic, with another floor", `{"dynamic":true,"scale":4,"hysteresis":1}`, ScalerConfig{Dynamic: true, Init: 64, Growth: 2, Backoff: 0.5, Interval: 1,
			Floor: 16, Ceiling: 64, Hysteresis: 1}, ScalerState{Dynamic: true, Scale: 16, Hysteresis: 1}},
		{"none into dynamic", `{"scale":1,"good":0,"hysteresis":0,"in_a_row":1,"skipped":3}`, dynamic,
			ScalerState{Dynamic: true, Scale: 65536, Hysteresis: 1, InARow: 1, Skipped: 3}},
		{"none into fixed", `{"scale":1,"good":0,"hysteresis":0,"in_a_row":0,"skipped":3}`, fixed, ScalerState{Scale: 512, Skipped: 3}},
		{"dynamic into none", `{"dynamic":true,"scale":4096,"good":7,"hysteresis":1,"in_a_row":0,"skipped":4}`, NoScaler(10), ScalerState{Scale: 1, Skipped: 4}},
	} {
		var st ScalerState
		must(t, json.Unmarshal([]byte(c.raw), &st))
		s, err := c.into.New()
		must(t, err)
		must(t, s.Restore(st))
		if got := s.State(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
