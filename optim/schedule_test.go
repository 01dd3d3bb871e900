package optim

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestScheduleShapes(t *testing.T) {
	base := ScheduleConfig{Peak: 1, Warmup: 10, Total: 110}
	with := func(shape string, change func(*ScheduleConfig)) ScheduleConfig {
		c := base
		c.Shape = shape
		change(&c)
		return c
	}
	none := func(*ScheduleConfig) {}
	for _, c := range []struct {
		cfg  ScheduleConfig
		step int
		want float64
	}{
		{with("", none), 0, 0.1}, // the first step trains
		{with("", none), 9, 1},   // the last of the warm-up is at the peak
		{with(Constant, none), 5000, 1},
		{with(Linear, none), 10, 1},
		{with(Linear, none), 60, 0.5},
		{with(Linear, none), 110, 0},
		{with(Linear, none), 999, 0}, // beyond the end it stays
		{with(Linear, func(c *ScheduleConfig) { c.MinRatio = 0.2 }), 60, 0.6},
		{with(Cosine, none), 10, 1},
		{with(Cosine, none), 60, 0.5},
		{with(Cosine, none), 35, 0.5 * (1 + math.Sqrt2/2)},
		{with(Cosine, func(c *ScheduleConfig) { c.MinRatio = 0.1 }), 110, 0.1},
		{with(WSD, func(c *ScheduleConfig) { c.Decay = 20 }), 89, 1},
		{with(WSD, func(c *ScheduleConfig) { c.Decay = 20 }), 95, 0.5},
		{with(WSD, func(c *ScheduleConfig) { c.Decay = 20; c.MinRatio = 0.1 }), 110, 0.1},
		{with(StepDown, func(c *ScheduleConfig) { c.Milestones = []int{30, 60}; c.Gamma = 0.1 }), 29, 1},
		{with(StepDown, func(c *ScheduleConfig) { c.Milestones = []int{30, 60}; c.Gamma = 0.1 }), 30, 0.1},
		{with(StepDown, func(c *ScheduleConfig) { c.Milestones = []int{30, 60}; c.Gamma = 0.1 }), 60, 0.01},
		{with(StepDown, func(c *ScheduleConfig) { c.Milestones = []int{30, 60}; c.Gamma = 0.1; c.MinRatio = 0.05 }), 60, 0.05},
		{with(Cosine, func(c *ScheduleConfig) { c.Warmup = 0 }), 0, 1},
		{with(Cosine, none), -3, 0.1},
	} {
		s, err := c.cfg.New()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.LR(c.step); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v at %d is %g, want %g", s, c.step, got, c.want)
		}
	}
}

// No shape may rise after the warm-up, leave its bounds, or jump where it should be smooth.
func TestScheduleIsSmoothAndBounded(t *testing.T) {
	for _, shape := range Shapes() {
		c := ScheduleConfig{Shape: shape, Peak: 0.4, Warmup: 50, Total: 1000, MinRatio: 0.1, Decay: 200, Milestones: []int{300, 600, 900}, Gamma: 0.5}
		s, err := c.New()
		if err != nil {
			t.Fatal(err)
		}
		last := s.LR(0)
		for step := 1; step < 1200; step++ {
			lr := s.LR(step)
			if lr < c.Peak*c.MinRatio-1e-15 && step >= c.Warmup || lr > c.Peak+1e-15 {
				t.Fatalf("%s: %g at %d is out of bounds", shape, lr, step)
			}
			if step < c.Warmup == (lr <= last) && step != c.Warmup && lr != last {
				t.Fatalf("%s: goes from %g to %g at %d", shape, last, lr, step)
			}
			// The steepest smooth part is the start of 1-sqrt: 1/sqrt(200) of the way in one step.
			if shape != StepDown && math.Abs(lr-last) > c.Peak*0.0708 {
				t.Fatalf("%s: jumps from %g to %g at %d", shape, last, lr, step)
			}
			last = lr
		}
	}
}

func TestScheduleFaults(t *testing.T) {
	_, err := ScheduleConfig{Shape: "cosin", Warmup: -1, MinRatio: 2}.New()
	for _, want := range []string{`unknown shape "cosin"`, "peak learning rate", "warm-up must not be negative", "minimum ratio"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q: %v", want, err)
		}
	}
	for _, c := range []ScheduleConfig{
		{Shape: Cosine, Peak: 1},
		{Shape: Cosine, Peak: 1, Warmup: 10, Total: 10},
		{Shape: WSD, Peak: 1, Total: 10},
		{Shape: WSD, Peak: 1, Total: 10, Warmup: 4, Decay: 7},
		{Shape: StepDown, Peak: 1, Gamma: 0.1},
		{Shape: StepDown, Peak: 1, Gamma: 0, Milestones: []int{1}},
		{Shape: StepDown, Peak: 1, Gamma: 0.1, Milestones: []int{5, 5}},
		{Shape: StepDown, Peak: 1, Gamma: 0.1, Milestones: []int{0}},
		{Peak: math.NaN()},
		{Peak: math.Inf(1)},
	} {
		if _, err := c.New(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func ExampleScheduleConfig() {
	s, err := ScheduleConfig{Shape: Cosine, Peak: LinearScale(0.1, 1024, 256), Warmup: 4, Total: 20}.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range []int{0, 3, 12, 19} {
		fmt.Printf("step %d: %.4f\n", step, s.LR(step))
	}
	// Output:
	// step 0: 0.1000
	// step 3: 0.4000
	// step 12: 0.2000
	// step 19: 0.0038
}
