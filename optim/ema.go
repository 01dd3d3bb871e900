package optim

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

// EMA describes an exponential moving average of the weights (Polyak and Juditsky 1992; timm's ModelEma), which often evaluates better than the weights
// themselves: after each step, average = decay·average + (1-decay)·weights. The first step starts it. A step that is skipped does not count.
type EMA struct {
	Decay float64 // within 0…1; 0: no average
	// Warmup limits the decay of step n to 1 - n^(-2/3), as timm's ModelEmaV3 does, so that the initial weights are forgotten.
	Warmup bool
}

// On reports whether there is an average.
func (e EMA) On() bool { return e.Decay > 0 }

// DecayAt is the decay of step n, of which 1 is the first.
func (e EMA) DecayAt(n int64) float64 {
	switch {
	case n <= 1:
		return 0
	case e.Warmup:
		return min(e.Decay, 1-math.Pow(float64(n), -2.0/3))
	}
	return e.Decay
}

func (e EMA) validate(bad func(string, ...any)) {
	if !(e.Decay >= 0 && e.Decay < 1) {
		bad("the decay of the average must lie in 0…1, 1 excluded, got %g", e.Decay)
	}
}

func (e EMA) text() string {
	switch {
	case !e.On():
		return ""
	case e.Warmup:
		return fmt.Sprintf(" ema=%g,warm-up", e.Decay)
	}
	return fmt.Sprintf(" ema=%g", e.Decay)
}

// emaState is the kind of the averages among the optimizer's state.
const emaState = "ema"

// fillEMA writes the hyper vector of the averages, behind those of the groups.
func (o *Optimizer) fillEMA(dst []byte) {
	if !o.cfg.EMA.On() {
		return
	}
	decay := float32(o.cfg.EMA.DecayAt(o.count))
	for i, x := range []float32{decay, 1 - decay} { // of the rounded decay: together they are 1, or the average would shrink step by step
		binary.NativeEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

// emaOp is the op that moves the average of n elements.
func emaOp(n int64) npu.Op {
	v := npu.D(npu.F32, int(n))
	return npu.Op{Kind: npu.EMA, Attrs: npu.Attrs{}, In: []npu.Desc{npu.D(npu.F32, 2), v, v}, Out: []npu.Desc{v}}
}

// Averages lists the averages of all tensors by segment, those of segments without gradient included; nil without Config.EMA. The memory of an average
// has the layout of what it follows.
func (o *Optimizer) Averages() []StateTensor {
	var out []StateTensor
	if !o.cfg.EMA.On() {
		return nil
	}
	for i := range o.segs {
		s := &o.segs[i]
		for _, t := range s.Tensors {
			out = append(out, StateTensor{emaState, t.Name, i, s.average.At(4 * t.Off), t.Elems, npu.F32})
		}
	}
	return out
}

// ResetAverages enqueues a copy of the weights to their averages: where they begin.
func (o *Optimizer) ResetAverages(s npu.Stream) error {
	if !o.cfg.EMA.On() {
		return nil
	}
	for i := range o.segs {
		g := &o.segs[i]
		if err := s.Copy(g.average, g.Weight, 4*g.Elems); err != nil {
			return fmt.Errorf("optim: average of segment %d (%s): %w", i, g.Name, err)
		}
	}
	return nil
}
