package optim

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
)

const (
	hyperLen    = 9  // elements of the longest hyper vector, see npu/kinds.go
	hyperStride = 64 // bytes between groups: kernels may want aligned arguments
)

// hyperSlot is a host copy of the hyper vectors on its way to the device. There are several, so that Begin need not wait for the
// copy of the step before.
type hyperSlot struct {
	host []byte // page-locked, of the optimizer's one allocation
	sent npu.Event
	busy bool
}

// hyperBytes is the size of all hyper vectors: one for each group, and that of the averages.
func (o *Optimizer) hyperBytes() int64 { return int64(hyperStride * (len(o.cfg.Groups) + 1)) }

func (o *Optimizer) initHyper() error {
	size := o.hyperBytes()
	ring, err := o.allocHost("hyper-parameters", size*int64(len(o.hyperRing)))
	if err != nil {
		return err
	}
	for i := range o.hyperRing {
		ev, err := o.dev.NewEvent()
		if err != nil {
			return fmt.Errorf("optim: %w", err)
		}
		o.hyperRing[i] = hyperSlot{host: ring[size*int64(i):][:size:size], sent: ev}
	}
	return nil
}

// Begin starts a step: it counts it and sends the numbers of the step to the device. lr is the rate before the factor of each group.
// Every gradient is multiplied by gradScale: 1/(global count of items · loss scale), times ClipCoef where the norm is limited.
// Allocates nothing. Call it only for a step that will be taken: a skipped step does not count.
func (o *Optimizer) Begin(s npu.Stream, lr, gradScale float64) error {
	if bad(lr) || bad(gradScale) {
		return fmt.Errorf("optim: step %d: learning rate %g and gradient scale %g must be finite", o.count, lr, gradScale)
	}
	slot := &o.hyperRing[o.hyperNext]
	o.hyperNext = (o.hyperNext + 1) % len(o.hyperRing)
	if slot.busy && !slot.sent.Done() {
		if err := drain(s); err != nil {
			return err
		}
	}
	o.count++
	for g := range o.cfg.Groups {
		o.fillHyper(slot.host[g*hyperStride:], &o.cfg.Groups[g], lr, gradScale)
	}
	o.fillEMA(slot.host[len(o.cfg.Groups)*hyperStride:])
	slot.busy = true
	if err := s.CopyIn(o.hyper, slot.host); err != nil {
		return fmt.Errorf("optim: send hyper-parameters: %w", err)
	}
	if err := s.Record(slot.sent); err != nil {
		return fmt.Errorf("optim: send hyper-parameters: %w", err)
	}
	return nil
}

func bad(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// fillHyper writes the vector of one group in the order that kinds.go gives for the rule.
func (o *Optimizer) fillHyper(dst []byte, g *Group, lr, gradScale float64) {
	c := &o.cfg
	v := [hyperLen]float64{lr * g.LRMult, gradScale}
	first := 0.0
	if o.count == 1 {
		first = 1
	}
	own := o.rule.hyper(c, g, first, o.count)
	copy(v[2:], own[:])
	for i, x := range v {
		binary.NativeEndian.PutUint32(dst[4*i:], math.Float32bits(float32(x)))
	}
}

// correction is 1-beta^t for beta as the kernel sees it, rounded to float32. The kernel's 1-beta is off by up to 1e-5 of itself when
// beta is close to 1; with the exact beta here that error would not cancel in the first steps.
func correction(beta float64, t int64) float64 {
	return 1 - math.Pow(float64(float32(beta)), float64(t))
}
