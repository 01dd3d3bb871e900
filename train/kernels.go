package train

import (
	"github.com/gotrain/gotrain/train/telemetry"
)

// The times of kernels are medians over measuredSteps steps, after warmSteps that are slower.
const (
	warmSteps     = 2
	measuredSteps = 15
)

// kernels gathers the times of the device in the first steps of a run.
type kernels struct {
	steps                                  int // seen
	forward, compute, update, expose, took []float64
	ready                                  [][]float64 // by bucket
	told                                   bool
}

// measure takes the times of a step that was synchronised, and tells them when there are enough.
func (t *Trainer) measure(r report) {
	k := &t.kernels
	if k.told || r.skipped {
		return
	}
	if k.steps++; k.steps <= warmSteps && t.step < t.total {
		return
	}
	begin := t.marks.begin.At()
	k.forward = append(k.forward, (t.train.ready.At() - begin).Seconds())
	k.compute = append(k.compute, r.compute.Seconds())
	k.expose = append(k.expose, r.exposed.Seconds())
	k.update = append(k.update, max(0, (r.busy-r.compute).Seconds()))
	k.took = append(k.took, r.total.Seconds())
	if k.ready == nil {
		k.ready = make([][]float64, len(t.marks.ready))
	}
	for i, ev := range t.marks.ready {
		k.ready[i] = append(k.ready[i], (ev.At() - begin).Seconds())
	}
	if len(k.took) == measuredSteps || t.step == t.total {
		t.tellTimes()
	}
}

// tellTimes emits the medians.
func (t *Trainer) tellTimes() {
	k := &t.kernels
	k.told = true
	e := telemetry.Kernels{
		Step: int64(t.step), Steps: len(k.took), Batch: t.cfg.Batch, Accumulate: t.cfg.Accumulate, Device: t.dev.Info().Name, World: t.comm.Size(),
		Forward: telemetry.Median(k.forward), Compute: telemetry.Median(k.compute), Update: telemetry.Median(k.update), Exposed: telemetry.Median(k.expose),
		Took: telemetry.Median(k.took),
	}
	for i, b := range t.eng.Buckets() {
		e.Ready = append(e.Ready, telemetry.Ready{Param: t.eng.Plan().Params[b.Ready].Name, At: telemetry.Median(k.ready[i])})
	}
	t.emit(e)
	*k = kernels{told: true}
}
