package train

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/telemetry"
)

// utilisations records the MFU of every step, and warnings.
type utilisations struct {
	mfu      []float64
	warnings []string
}

func (u *utilisations) Emit(e telemetry.Event) error {
	switch e := e.(type) {
	case telemetry.Step:
		u.mfu = append(u.mfu, e.MFU.X)
	case telemetry.Warning:
		u.warnings = append(u.warnings, e.Text)
	}
	return nil
}

func (u *utilisations) Close() error { return nil }

// No step exceeds the device's peak: if one does, the peak is too low; that is reported once, and the step's speed replaces it.
func TestMFUIsAtMostOne(t *testing.T) {
	var seen utilisations
	tr, err := New(WithModel(mlp), WithData(noise(t, 24), 4), WithSteps(6), WithDevice("ref", 1), WithSinks(&seen),
		WithLR(0.01), WithOptimizer(optim.Default(optim.SGD, 0)),
		Option(func(c *Config) { c.PeakFLOPS = 1 }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen.mfu) != 6 {
		t.Fatalf("%d steps", len(seen.mfu))
	}
	for i, v := range seen.mfu {
		if !(v > 0 && v <= 1) {
			t.Errorf("step %d: mfu %g", i+1, v)
		}
	}
	if len(seen.warnings) != 1 || !strings.Contains(seen.warnings[0], "log.peak_tflops") {
		t.Errorf("warnings: %q", seen.warnings)
	}
}
