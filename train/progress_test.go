package train

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/telemetry"
)

// Whatever the earlier division, a run in epochs ends where its last epoch does.
func TestProgressOfAnotherDivision(t *testing.T) {
	for _, c := range []struct {
		name                            string
		len, world, batch, acc          int
		tail                            data.Tail
		at                              data.State
		step                            int
		wantWhole, wantTotal, wantShift int
	}{
		{"unchanged", 12, 1, 4, 1, data.Drop, data.State{Epoch: 1, Consumed: 4}, 4, 6, 6, 0},
		{"twice the ranks", 12, 2, 4, 1, data.Drop, data.State{Epoch: 1, Consumed: 4}, 4, 2, 5, -3},
		{"a smaller batch", 12, 1, 3, 1, data.Drop, data.State{Epoch: 1, Consumed: 4}, 4, 8, 6, 2},
		{"accumulation", 12, 1, 2, 2, data.Drop, data.State{Epoch: 1, Consumed: 4}, 4, 6, 6, 0},
		{"nothing left but a tail that is dropped", 12, 1, 5, 1, data.Drop, data.State{Epoch: 1, Consumed: 8}, 5, 4, 5, -1},
		{"the tail is padded", 12, 1, 5, 1, data.Pad, data.State{Epoch: 1, Consumed: 8}, 5, 6, 6, 0},
		{"before the first step", 12, 3, 4, 1, data.Drop, data.State{}, 0, 2, 2, 0},
		{"past the end", 12, 1, 4, 1, data.Drop, data.State{Epoch: 3}, 9, 6, 9, 0},
	} {
		s := data.Sampler{Len: c.len, World: c.world, Batch: c.batch, Tail: c.tail}
		p := newProgress(s, c.acc, 0, 2).from(s, c.at, c.acc, c.step)
		if want := (progress{c.wantWhole, c.wantTotal, c.wantShift}); p != want {
			t.Errorf("%s: %+v, want %+v", c.name, p, want)
		}
	}
}

// Without a change of division, a resumed run keeps its steps and its schedule to the bit.
func TestProgressIsUnchangedInItsOwnDivision(t *testing.T) {
	for _, tail := range []data.Tail{data.Drop, data.Pad} {
		for _, n := range []int{7, 12, 50, 101} {
			for _, acc := range []int{1, 2, 3, 5} {
				for _, epochs := range []float64{0.5, 1, 2.3, 7} {
					s := data.Sampler{Len: n, World: 2, Batch: 3, Tail: tail}
					p := newProgress(s, acc, 0, epochs)
					for step := range p.whole + 1 {
						if got := p.from(s, s.Skip(data.State{}, int64(step*acc)), acc, step); got != p {
							t.Fatalf("%v %d samples, %d accumulated, %g epochs, step %d: %+v, want %+v", tail, n, acc, epochs, step, got, p)
						}
					}
				}
			}
		}
	}
}

func TestPlaceInDataOfAnotherSize(t *testing.T) {
	for _, c := range []struct{ consumed, was, is, want int64 }{
		{300, 1000, 1000, 300}, {300, 1000, 2000, 600}, {300, 1000, 100, 30}, {300, 0, 1000, 300}, {300, 0, 100, 100},
	} {
		got := fitted(data.State{Epoch: 2, Consumed: c.consumed}, int(c.was), int(c.is))
		if want := (data.State{Epoch: 2, Consumed: c.want}); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

// rates records the learning rate and the position of every step.
type rates struct {
	lr, epoch []float64
	start     int64 // steps already done
}

func (r *rates) Emit(e telemetry.Event) error {
	if s, ok := e.(telemetry.RunStart); ok {
		r.start = s.Step
	}
	if s, ok := e.(telemetry.Step); ok {
		r.lr, r.epoch = append(r.lr, s.LR.X), append(r.epoch, s.Epoch.X)
	}
	return nil
}

func (r *rates) Close() error { return nil }

// A run in epochs that resumes with other ranks, batch, accumulation or data ends with its last epoch, at the end of its schedule.
func TestRunInEpochsGoesOnInAnotherDivision(t *testing.T) {
	linear := func(total, _ int) (optim.Schedule, error) {
		return optim.ScheduleConfig{Shape: optim.Linear, Peak: 0.01, Total: total}.New()
	}
	opts := func(dir string, samples, batch, acc int, sink telemetry.Sink) []Option {
		return []Option{WithModel(mlp), WithData(noise(t, samples), batch), WithEpochs(4), WithSchedule(linear), WithDevice("ref", 1), WithAccumulate(acc),
			WithOptimizer(optim.Default(optim.SGD, 0)), WithCheckpoints(dir, 0), WithSinks(sink)}
	}
	for _, c := range []struct {
		ranks, samples, batch, acc int
		steps                      int     // left
		first, last                float64 // fractions of the peak
	}{
		{1, 24, 4, 1, 12, 0.5, 1. / 24},
		{2, 24, 4, 1, 6, 0.5, 1. / 12},
		{1, 24, 3, 1, 16, 0.5, 1. / 32},
		{1, 24, 4, 3, 4, 0.5, 1. / 8},
		{1, 12, 4, 1, 6, 0.5, 1. / 12},
		{1, 48, 4, 1, 24, 0.5, 1. / 48},
	} {
		t.Run(fmt.Sprintf("%d ranks, %d samples, batch %d, %d accumulated", c.ranks, c.samples, c.batch, c.acc), func(t *testing.T) {
			dir := t.TempDir()
			_, errs := together(t, 1, func(int) []Option { return opts(dir, 24, 4, 1, &rates{}) }, func(tr *Trainer, _, step int) {
				if step == 11 {
					tr.Stop()
				}
			})
			if !errors.Is(errs[0], ErrStopped) {
				t.Fatal(errs[0])
			}
			got := &rates{}
			res, errs := together(t, c.ranks, func(r int) []Option {
				if r == 0 {
					return opts(dir, c.samples, c.batch, c.acc, got)
				}
				return opts(dir, c.samples, c.batch, c.acc, &rates{})
			}, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			n := len(got.lr)
			if got.start != 12 {
				t.Errorf("it says that %d steps are behind it", got.start)
			}
			if n != c.steps || res[0].Steps != 12+c.steps || got.epoch[n-1] != 4 {
				t.Fatalf("%d steps to step %d and epoch %v, want %d to epoch 4", n, res[0].Steps, got.epoch[n-1:], c.steps)
			}
			for i, want := range map[int]float64{0: c.first, n - 1: c.last} {
				if math.Abs(got.lr[i]-0.01*want) > 1e-9 {
					t.Errorf("learning rate of step %d after the resume is %g, want %g", i, got.lr[i], 0.01*want)
				}
			}
		})
	}
}
