package generate

import (
	"context"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// ahead is how many runs of steps are enqueued at a time. The stream's thread chooses the tokens of one step and begins the next, without waiting for another
// goroutine to wake up. That takes a tenth of a millisecond on an idle machine, as long as a fifth of a small model's token, and several on a busy one.
const ahead = 2

// Waking the goroutine that reports costs the stream's thread tens of microseconds, and the goroutine then needs a processor. So as many steps as take about
// reportEvery, at most mostSteps, are reported together: sooner than anybody reads.
const (
	reportEvery = 4 * time.Millisecond
	mostSteps   = 16
)

// token is one that was chosen.
type token struct {
	text int
	id   int32
}

// step is one run of the model, for the newest token of each text.
type step struct {
	done   bool    // its host function ran, which sets the rest
	chosen []token // what follows
	over   bool    // no text is left
	err    error
}

// steps is a run of steps that are reported together.
type steps struct {
	all []step
	n   int       // how many of them are in use
	end npu.Event // recorded behind the last one's host function
}

// write generates until all texts are done. The first tokens follow from the logits that reading the prompts left.
func (g *Generator) write(ctx context.Context, texts []*text, emit func(text int, id int32), st *Stats) (err error) {
	var first step
	g.advance(texts, &first)
	if stop, err := first.tell(ctx, emit, st); stop {
		return err
	}
	var runs [ahead]steps
	for i := range runs {
		runs[i].all = make([]step, mostSteps)
		if runs[i].end, err = g.dev.NewEvent(); err != nil {
			return err
		}
		defer runs[i].end.Close()
	}
	err = g.enqueue(texts, &runs[0], 1)
	begin, n := time.Now(), 1
	for i := 0; err == nil; i++ {
		r := &runs[i%ahead]
		if err = g.enqueue(texts, &runs[(i+1)%ahead], n); err != nil {
			break
		}
		failed := r.end.Sync(context.WithoutCancel(ctx))
		now := time.Now()
		n = together(now.Sub(begin) / time.Duration(r.n))
		begin = now
		stop := false
		if stop, err = r.tell(ctx, emit, st); stop {
			break
		}
		err = failed
	}
	if dropped := g.drop(); err == nil {
		err = dropped
	}
	return err
}

// together is how many steps of a given time are reported together.
func together(step time.Duration) int {
	return int(max(1, min(mostSteps, reportEvery/max(step, 1))))
}

// tell reports the steps of a run that took place, and whether one of them was the last of all.
func (r *steps) tell(ctx context.Context, emit func(text int, id int32), st *Stats) (stop bool, err error) {
	for i := range r.all[:r.n] {
		if !r.all[i].done {
			break
		}
		st.Steps++
		if stop, err = r.all[i].tell(ctx, emit, st); stop {
			break
		}
	}
	return stop, err
}

// tell reports the tokens of a step, and whether it was the last.
func (s *step) tell(ctx context.Context, emit func(text int, id int32), st *Stats) (stop bool, err error) {
	for _, t := range s.chosen {
		emit(t.text, t.id)
		st.Written++
	}
	if s.err != nil || s.over {
		return true, s.err
	}
	err = context.Cause(ctx)
	return err != nil, err
}

// enqueue enqueues n steps: the model, then the choice of what follows and the inputs of the next step, on the stream's thread.
func (g *Generator) enqueue(texts []*text, r *steps, n int) error {
	r.n = n
	for i := range r.all[:n] {
		if err := g.forward(g.step); err != nil {
			return err
		}
		s := &r.all[i]
		s.done = false
		err := g.stream.Do(func() error {
			for i := range texts {
				g.newest[i] = g.step.logits(i, g.config.Vocab)
			}
			if g.advance(texts, s); s.over || s.err != nil {
				g.stream.Skip(true) // what is enqueued behind it, up to drop
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return g.stream.Record(r.end)
}

// advance chooses tokens and makes them the inputs of the model.
func (g *Generator) advance(texts []*text, s *step) {
	s.chosen, s.err = g.choose(texts, s.chosen[:0])
	s.over, s.done = over(texts), true
	g.step.clear()
	for i, t := range texts {
		if !t.done {
			g.step.put(i, 0, t.next, t.length)
			t.length++
		}
	}
}

// drop ends the steps that were enqueued ahead, and clears the stream's error. After it the stream skips nothing.
func (g *Generator) drop() error {
	g.stream.Skip(true)
	defer g.stream.Skip(false)
	return g.stream.Sync(context.Background())
}
