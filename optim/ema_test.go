package optim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// Averages follow timm's, on every device.
func TestAveragesEqualTimm(t *testing.T) {
	var tr struct {
		Values [][]float64
		Cases  []struct {
			Decay    float64
			Warmup   bool
			Averages [][]float64
		}
	}
	readTrace(t, "ema.json", &tr)
	if len(tr.Cases) < 5 {
		t.Fatalf("%d cases", len(tr.Cases))
	}
	for _, family := range npu.Families() {
		for _, c := range tr.Cases {
			t.Run(fmt.Sprintf("%s/%g warm-up %t", family, c.Decay, c.Warmup), func(t *testing.T) {
				b := benchOn(t, family)
				n := len(tr.Values[0])
				trained := Segment{Name: "trained", Weight: b.alloc(n), Grad: b.alloc(n), Elems: int64(n)}
				seg := Segment{Name: "averaged", Weight: b.alloc(n), Elems: int64(n)}
				cfg := Default(SGD, 0)
				cfg.EMA = EMA{Decay: c.Decay, Warmup: c.Warmup}
				opt, err := New(b.dev, cfg, []Segment{trained, seg})
				must(t, err)
				defer opt.Close()
				avg := opt.Averages()
				if len(avg) != 2 || avg[1].Param != "averaged" || len(opt.State()) != 1 {
					t.Fatalf("averages %v, state %v", avg, opt.State())
				}
				b.put(seg.Weight, tr.Values[0])
				must(t, opt.ResetAverages(b.s))
				for i, want := range c.Averages {
					b.put(seg.Weight, tr.Values[i+1])
					must(t, opt.Begin(b.s, 0.1, 1))
					must(t, opt.Step(b.s))
					must(t, opt.Measure(b.s))
					b.sync()
					got := b.get(avg[1].Ptr, n)
					for j := range want {
						if math.Abs(got[j]-want[j]) > 5e-7 {
							t.Fatalf("step %d: average %v, want %v", i+1, got, want)
						}
					}
				}
			})
		}
	}
}

// A trained segment is stepped first and averaged afterwards, in the same launch list; a step allocates nothing.
func TestAverageFollowsTheStep(t *testing.T) {
	b := newBench(t)
	seg := Segment{Name: "s", Weight: b.alloc(2), Grad: b.alloc(2), Elems: 2}
	cfg := Config{Rule: SGD, Groups: DefaultGroups(0), EMA: EMA{Decay: 0.5}}
	opt, err := New(b.dev, cfg, []Segment{seg})
	must(t, err)
	defer opt.Close()
	b.put(seg.Weight, []float64{1, 2})
	b.put(seg.Grad, []float64{1, -1})
	must(t, opt.ResetAverages(b.s))
	must(t, opt.Begin(b.s, 1, 1))
	must(t, opt.StepSegment(b.s, 0))
	must(t, opt.Begin(b.s, 1, 1))
	must(t, opt.StepSegment(b.s, 0))
	b.sync()
	if w, a := b.get(seg.Weight, 2), b.get(opt.Averages()[0].Ptr, 2); w[0] != -1 || w[1] != 4 || a[0] != -0.5 || a[1] != 3.5 {
		t.Errorf("weights %v, averages %v", w, a)
	}
	if opt.Bytes() != 8 {
		t.Errorf("%d bytes of state", opt.Bytes())
	}
}

func TestEMAFaults(t *testing.T) {
	for _, d := range []float64{-1, 1, math.NaN()} {
		cfg := Default(SGD, 0)
		if cfg.EMA.Decay = d; cfg.Validate() == nil || !strings.Contains(cfg.Validate().Error(), "average") {
			t.Errorf("decay %g: %v", d, cfg.Validate())
		}
	}
	b := newBench(t)
	_, err := New(b.dev, Default(SGD, 0), []Segment{{Name: "s", Weight: b.alloc(2), Elems: 2}})
	if err == nil || !strings.Contains(err.Error(), "no gradient memory") {
		t.Errorf("a segment without gradient: %v", err)
	}
	if s := (Config{Rule: SGD, EMA: EMA{Decay: 0.9, Warmup: true}}).String(); !strings.Contains(s, "ema=0.9,warm-up") {
		t.Error(s)
	}
}

// The average of what does not change stays what it is, over any number of steps.
func TestAverageDoesNotShrink(t *testing.T) {
	for _, decay := range []float64{0.9, 0.9999, 0.99999, 0.9999999} {
		o := &Optimizer{cfg: Config{EMA: EMA{Decay: decay}}, count: 5}
		var b [8]byte
		o.fillEMA(b[:])
		keep, take := math.Float32frombits(binary.NativeEndian.Uint32(b[:])), math.Float32frombits(binary.NativeEndian.Uint32(b[4:]))
		if float64(keep)+float64(take) != 1 {
			t.Errorf("decay %g: %g and %g", decay, keep, take)
		}
	}
}
