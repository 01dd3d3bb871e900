package generate

import (
	"context"

	"github.com/gotrain/gotrain/npu"
)

// ahead is how many steps are enqueued at a time. The stream's thread chooses the tokens of one and begins the next, without waiting for another goroutine to
// wake up. That takes a tenth of a millisecond on an idle machine, as long as a fifth of a small model's token, and several on a busy one.
const ahead = 2

// token is one that was chosen.
type token struct {
	text int
	id   int32
}

// step is one run of the model, for the newest token of each text.
type step struct {
	end    npu.Event // recorded behind the host function that sets the rest
	chosen []token   // what follows
	over   bool      // no text is left
	err    error
}

// write generates until all texts are done. The first tokens follow from the logits that reading the prompts left.
func (g *Generator) write(ctx context.Context, texts []*text, emit func(text int, id int32), st *Stats) (err error) {
	var first step
	g.advance(texts, &first)
	if stop, err := first.tell(ctx, emit, st); stop {
		return err
	}
	var steps [ahead]step
	for i := range steps {
		if steps[i].end, err = g.dev.NewEvent(); err != nil {
			return err
		}
		defer steps[i].end.Close()
	}
	err = g.enqueue(texts, &steps[0])
	for n := 0; err == nil; n++ {
		if err = g.enqueue(texts, &steps[(n+1)%ahead]); err != nil {
			break
		}
		s := &steps[n%ahead]
		if err = s.end.Sync(context.WithoutCancel(ctx)); err != nil {
			break
		}
		st.Steps++
		stop := false
		if stop, err = s.tell(ctx, emit, st); stop {
			break
		}
	}
	if dropped := g.drop(); err == nil {
		err = dropped
	}
	return err
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

// enqueue enqueues a step: the model, then the choice of what follows and the inputs of the next step, on the stream's thread.
func (g *Generator) enqueue(texts []*text, s *step) error {
	if err := g.forward(g.step); err != nil {
		return err
	}
	err := g.stream.Do(func() error {
		for i := range texts {
			g.newest[i] = g.step.logits(i, g.config.Vocab)
		}
		g.advance(texts, s)
		return nil
	})
	if err != nil {
		return err
	}
	return g.stream.Record(s.end)
}

// advance chooses tokens and makes them the inputs of the model.
func (g *Generator) advance(texts []*text, s *step) {
	s.chosen, s.err = g.choose(texts, s.chosen[:0])
	s.over = over(texts)
	g.step.clear()
	for i, t := range texts {
		if !t.done {
			g.step.put(i, 0, t.next, t.length)
			t.length++
		}
	}
}

// drop ends the steps that were enqueued ahead, and clears the stream's error.
func (g *Generator) drop() error {
	g.stream.Skip(true)
	defer g.stream.Skip(false)
	return g.stream.Sync(context.Background())
}
