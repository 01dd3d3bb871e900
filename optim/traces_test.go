package optim

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// The traces in testdata are PyTorch's; README.md there says how they were made.

func readTrace(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	must(t, err)
	must(t, json.Unmarshal(raw, into))
}

type vectors map[string][]float64

type ruleTrace struct {
	Start vectors
	Grads []vectors
	Cases []struct {
		Name   string
		Config struct {
			Rule                     string
			Momentum, Dampening      float64
			Nesterov, Decoupled      bool
			Beta1, Beta2, Eps, Trust float64
			Decay                    float64
			TrustClip                bool `json:"trust_clip"`
			AlwaysAdapt              bool `json:"always_adapt"`
		}
		GradScale float64 `json:"grad_scale"`
		Clip      float64
		LR        []float64
		Norms     []float64
		Weights   []vectors
		State     map[string]vectors
	}
}

func TestRulesEqualPyTorch(t *testing.T) {
	var tr, timm ruleTrace
	readTrace(t, "optimizers.json", &tr)
	readTrace(t, "lamb.json", &timm) // of the same start and gradients
	if len(timm.Cases) < 6 {
		t.Fatalf("%d cases of timm, want 6 or more", len(timm.Cases))
	}
	tr.Cases = append(tr.Cases, timm.Cases...)
	if len(tr.Cases) < 15 {
		t.Fatalf("%d cases, want 15 or more", len(tr.Cases))
	}
	for _, family := range npu.Families() {
		for _, c := range tr.Cases {
			t.Run(family+"/"+c.Name, func(t *testing.T) {
				b := benchOn(t, family)
				x := c.Config
				cfg := Config{Rule: x.Rule, Momentum: x.Momentum, Dampening: x.Dampening, Nesterov: x.Nesterov, Decoupled: x.Decoupled,
					Beta1: x.Beta1, Beta2: x.Beta2, Eps: x.Eps, Trust: x.Trust, TrustClip: x.TrustClip, AlwaysAdapt: x.AlwaysAdapt, Groups: DefaultGroups(x.Decay)}
				seg, at := traceSegment(b, tr.Start)
				opt, err := New(b.dev, cfg, []Segment{seg})
				must(t, err)
				defer opt.Close()
				for step, want := range c.Weights {
					for name, p := range at {
						b.put(seg.Grad.At(4*p.Off), tr.Grads[step][name])
					}
					must(t, opt.Measure(b.s))
					b.sync()
					norm := opt.Norm().L2(c.GradScale)
					if c.Clip > 0 && math.Abs(norm-c.Norms[step]) > 1e-6*c.Norms[step] {
						t.Errorf("step %d: norm %.9g, PyTorch %.9g", step, norm, c.Norms[step])
					}
					must(t, opt.Begin(b.s, c.LR[step], c.GradScale*ClipCoef(norm, c.Clip)))
					must(t, opt.Step(b.s))
					for name, p := range at {
						near(t, name, step, b.get(seg.Weight.At(4*p.Off), int(p.Elems)), want[name])
					}
				}
				states := 0
				for _, st := range opt.State() {
					want := c.State[st.Kind][st.Param]
					// The kernel's 1-beta2 comes from a float32 beta2, up to 3e-5 off for 0.999; correction() makes it cancel in the weights.
					near(t, st.Name(), len(c.Weights)-1, b.get(st.Ptr, int(st.Elems)), want, map[string]float64{"exp_avg_sq": 3e-5}[st.Kind])
					states++
				}
				if want := 3 * len(c.State); states != want {
					t.Errorf("%d state tensors, PyTorch has %d", states, want)
				}
			})
		}
	}
}

// near allows 2e-6 of the largest number: float32 keeps 6e-8 of each, over 12 steps of a few operations, while the trace was computed in
// float64.
func near(t *testing.T, what string, step int, got, want []float64, wider ...float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, PyTorch has %d", what, len(got), len(want))
	}
	bound := slices.Max(append(wider, 2e-6))
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= bound*largest) {
			t.Fatalf("step %d: %s[%d] is %.9g, PyTorch %.9g", step, what, i, got[i], want[i])
		}
	}
}

// traceSegment lays the parameters of a trace into one segment, with gaps, and fills in the start.
func traceSegment(b *bench, start vectors) (Segment, map[string]Tensor) {
	at := map[string]Tensor{}
	seg := Segment{Name: "all"}
	for _, name := range slices.Sorted(maps.Keys(start)) {
		g := NoDecay
		if name == "weight" {
			g = Decay
		}
		ten := Tensor{name, (seg.Elems + 15) &^ 15, int64(len(start[name])), g}
		seg.Tensors = append(seg.Tensors, ten)
		seg.Elems = ten.Off + ten.Elems
		at[name] = ten
	}
	seg.Weight, seg.Grad = b.alloc(int(seg.Elems)), b.alloc(int(seg.Elems))
	for name, p := range at {
		b.put(seg.Weight.At(4*p.Off), start[name])
	}
	return seg, at
}

func TestSchedulesEqualPyTorch(t *testing.T) {
	var tr struct {
		Cases []struct {
			Name   string
			Config struct {
				Shape         string
				Peak          float64
				Warmup, Total int
				MinRatio      float64 `json:"min_ratio"`
				Milestones    []int
				Gamma         float64
				Decay         int
			}
			LR []float64
		}
	}
	readTrace(t, "schedules.json", &tr)
	if len(tr.Cases) < 13 {
		t.Fatalf("%d cases, want 13 or more", len(tr.Cases))
	}
	for _, c := range tr.Cases {
		s, err := ScheduleConfig(c.Config).New()
		must(t, err)
		for step, want := range c.LR {
			// PyTorch chains factors from step to step; the closed form is the more exact of the two.
			if got := s.LR(step); math.Abs(got-want) > 1e-12*max(want, c.Config.Peak*1e-3) {
				t.Errorf("%s: step %d: %.17g, PyTorch %.17g", c.Name, step, got, want)
			}
		}
	}
}

func TestScalerEqualsPyTorch(t *testing.T) {
	var tr struct {
		AdamW struct {
			LR, Decay float64
			Start     []float64
		}
		Cases []struct {
			Name   string
			Config struct {
				Init, Growth, Backoff float64
				Interval              int
			}
			Steps []struct {
				Bad, Skipped bool
				Scale        float64
				After        float64 `json:"scale_after"`
				Weights      []float64
			}
		}
	}
	readTrace(t, "scaler.json", &tr)
	if len(tr.Cases) < 6 {
		t.Fatalf("%d cases, want 6 or more", len(tr.Cases))
	}
	for _, c := range tr.Cases {
		cfg := DefaultScaler()
		cfg.Init, cfg.Growth, cfg.Backoff, cfg.Interval = c.Config.Init, c.Config.Growth, c.Config.Backoff, c.Config.Interval
		s, err := cfg.New()
		must(t, err)
		b := newBench(t)
		seg, _ := traceSegment(b, vectors{"weight": tr.AdamW.Start})
		opt, err := New(b.dev, Default(AdamW, tr.AdamW.Decay), []Segment{seg})
		must(t, err)
		for i, st := range c.Steps {
			scale := s.Scale()
			g := []float64{0.5 * scale, 0.25 * float64(i+1) * scale, -scale}
			if st.Bad {
				g[1] = math.Inf(1)
			}
			b.put(seg.Grad, g)
			must(t, opt.Measure(b.s))
			b.sync()
			skip, err := s.Update(opt.Norm().NonFinite > 0)
			must(t, err)
			if !skip {
				must(t, opt.Begin(b.s, tr.AdamW.LR, 1/scale))
				must(t, opt.Step(b.s))
			}
			if scale != st.Scale || s.Scale() != st.After || skip != st.Skipped {
				t.Fatalf("%s: step %d: scale %g → %g skipped %t, PyTorch %g → %g %t", c.Name, i, scale, s.Scale(), skip, st.Scale, st.After, st.Skipped)
			}
			got := b.get(seg.Weight, 3)
			for j, want := range st.Weights { // the trace is float32 too, so both sides round: 1e-5
				if math.Abs(got[j]-want) > 1e-5*math.Abs(want) {
					t.Fatalf("%s: step %d: weight %d is %.9g, PyTorch %.9g", c.Name, i, j, got[j], want)
				}
			}
		}
	}
}
