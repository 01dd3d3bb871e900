package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp/simulate"
	"github.com/gotrain/gotrain/train/telemetry"
)

// errNoPeak says why there is no prediction.
var errNoPeak = errors.New("the peak of the device is not known; set log.peak_tflops to predict times")

// timeline predicts when the device completes each gradient of a step, op by op, from the cost model of the plan.
func (t *Trainer) timeline() (simulate.Compute, error) {
	if t.peak <= 0 {
		return simulate.Compute{}, errNoPeak
	}
	pl := t.train.prog.Plan()
	ends := make([]float64, len(pl.Steps)) // by step of the plan: when it is done
	var at, forward float64
	for i := range pl.Steps {
		at += t.expected(&pl.Steps[i])
		ends[i] = at
		if !pl.Steps[i].Back {
			forward = at
		}
	}
	before := at * float64(t.cfg.Accumulate-1) // micro-batches that are not reduced
	c := simulate.Compute{Forward: duration(before + forward), End: duration(before + at)}
	ws := t.train.prog.Weights()
	last := time.Duration(0)
	for _, i := range t.order {
		ready := 0.0
		if s := ws[i].Ready; s >= 0 && s < len(ends) {
			ready = ends[s]
		}
		last = max(last, duration(before+ready))
		c.Ready = append(c.Ready, last)
	}
	// The optimizer reads gradient, weight and moments, and writes the latter two.
	c.Update = float64(3+2*len(t.cfg.Optim.States())) / t.traffic()
	return c, nil
}

func duration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// measured replaces the times of a prediction by those of a run: at the gradients that completed its buckets by what was measured, between them in the
// proportions of the prediction. names are those of the gradients in ready order, gradients their bytes.
func measured(c simulate.Compute, names []string, gradients int64, k telemetry.Kernels) (simulate.Compute, error) {
	if !(k.Compute > 0) || !(k.Took >= k.Compute) {
		return c, fmt.Errorf("the run computed for %v s in a step of %v s", k.Compute, k.Took)
	}
	m := knots{{0, 0}}
	add := func(model time.Duration, was float64) { m = append(m, knot{model.Seconds(), was}) }
	if k.Forward > 0 {
		add(c.Forward, k.Forward)
	}
	for _, r := range k.Ready {
		i := slices.Index(names, r.Param)
		if i < 0 {
			return c, fmt.Errorf("the run has a gradient %s, which this model lacks\nhint: plan the recipe that was measured", r.Param)
		}
		add(c.Ready[i], r.At)
	}
	add(c.End, k.Compute)
	m.order()
	out := simulate.Compute{Forward: m.at(c.Forward), End: duration(k.Compute), Update: k.Update / float64(max(1, gradients))}
	last := time.Duration(0)
	for _, r := range c.Ready {
		last = min(max(last, m.at(r)), out.End)
		out.Ready = append(out.Ready, last)
	}
	out.Forward = min(out.Forward, out.End)
	out.Rest = duration(max(0, k.Took-k.Compute-k.Exposed-k.Update))
	return out, nil
}

// knot is a point of a function from predicted to measured seconds.
type knot struct{ model, was float64 }

// knots are the points in order. Between them the function is a line.
type knots []knot

// order sorts the points, and drops those at which time would run backwards.
func (m *knots) order() {
	slices.SortStableFunc(*m, func(a, b knot) int {
		switch {
		case a.model < b.model:
			return -1
		case a.model > b.model:
			return 1
		}
		return 0
	})
	end := (*m)[len(*m)-1]
	kept := (*m)[:1]
	for _, k := range (*m)[1:] {
		if last := kept[len(kept)-1]; k.model > last.model && k.was >= last.was && k.was <= end.was {
			kept = append(kept, k)
		}
	}
	*m = kept
}

// at is the measured time of a predicted one.
func (m knots) at(model time.Duration) time.Duration {
	x := model.Seconds()
	i := slices.IndexFunc(m, func(k knot) bool { return k.model >= x })
	switch {
	case i == 0:
		return duration(m[0].was)
	case i < 0:
		return duration(m[len(m)-1].was)
	}
	a, b := m[i-1], m[i]
	return duration(a.was + (b.was-a.was)*(x-a.model)/(b.model-a.model))
}
