package ddp

import (
	"context"
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Vote is the input of a rank to Agree.
type Vote struct {
	Count     float64   // items (samples, tokens) that this rank's gradient sums over
	LossSum   float64   // sum, not mean, over those items
	Stop      bool      // this rank was asked to stop
	NonFinite bool      // this rank saw an infinite or undefined number
	Failed    bool      // this rank has an error that ends the job
	Abandon   bool      // this rank gave up the step: no rank may update with its gradients
	Hold      bool      // this rank wants updates to wait for a second agreement, after the last bucket
	Sums      []float64 // anything else to sum; same length on every rank
}

// Verdict is the same on every rank.
type Verdict struct {
	Count     float64
	LossSum   float64
	Sums      []float64 // valid until the next Agree
	Stop      []int     // ranks that voted so, nil if none
	NonFinite []int
	Failed    []int
	Abandon   []int
	Hold      []int
}

const (
	voteStop = 1 << iota
	voteNonFinite
	voteFailed
	voteAbandon
	voteHold
)

// Agree sums counts and losses in float64 over ranks and tells every rank which ranks raised which flag: one tiny all-reduce, cheap enough for every step.
// All ranks must call it at the same point, outside of a reduction (before Begin or after Wait). It detects ranks at
// different steps.
//
// Each rank has two slots in the vector (flags, step) that the others leave at zero, so a plain sum delivers the values of
// each rank.
func (e *Engine) Agree(ctx context.Context, v Vote) (Verdict, error) {
	step, err := e.between("Agree")
	if err != nil {
		return Verdict{}, err
	}
	return e.poll(ctx, step, v)
}

// Vote is Agree within a step, with Config.VoteFirst: after Begin of the last micro-batch, once the forward pass is done. The first bucket waits for
// it, so that ranks keep one order of collectives and no rank updates a weight before all know the global count and that the loss is finite.
func (e *Engine) Vote(ctx context.Context, v Vote) (Verdict, error) {
	e.mu.Lock()
	s := &e.step
	switch {
	case e.err != nil:
		defer e.mu.Unlock()
		return Verdict{}, e.err
	case !e.cfg.VoteFirst || !s.open || !s.last || s.voted:
		defer e.mu.Unlock()
		return Verdict{}, fmt.Errorf(
			"ddp: rank %d step %d: Vote is not allowed here\nhint: set Config.VoteFirst and call it once, between Begin of the last micro-batch and Wait",
			e.comm.Rank(),
			s.number,
		)
	}
	s.voted = true
	step := s.number
	e.mu.Unlock()
	out, err := e.poll(ctx, step, v)
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		s.run.Open()
		e.advance()
	}
	return out, err
}

// poll is the all-reduce behind Agree and Vote.
func (e *Engine) poll(ctx context.Context, step int64, v Vote) (Verdict, error) {
	w, rank := e.comm.Size(), e.comm.Rank()
	m := e.ballot(2 + 2*w + len(v.Sums))
	b := comm.View[float64](m)
	clear(b)
	b[0], b[1] = v.Count, v.LossSum
	b[2+rank] = float64(flags(v))
	b[2+w+rank] = float64(step)
	copy(b[2+2*w:], v.Sums)
	ctx, cancel := e.deadline(ctx)
	defer cancel()
	if err := comm.Wait(ctx)(e.ctl.AllReduce(ctx, m, comm.Sum)); err != nil {
		err = fmt.Errorf("ddp: rank %d step %d: agreeing: %w", rank, step, err)
		e.fail(err)
		return Verdict{}, err
	}
	out := Verdict{Count: b[0], LossSum: b[1], Sums: b[2+2*w:]}
	steps := b[2+w : 2+2*w]
	for r, f := range b[2 : 2+w] {
		if steps[r] != steps[0] {
			err := fmt.Errorf(
				"ddp: ranks are out of step: rank 0 at step %.0f, rank %d at step %.0f\nhint: run the same number of steps on all ranks; check how data is split",
				steps[0],
				r,
				steps[r],
			)
			e.end(err) // every rank sees the same
			return Verdict{}, err
		}
		if int(f)&voteStop != 0 {
			out.Stop = append(out.Stop, r)
		}
		if int(f)&voteNonFinite != 0 {
			out.NonFinite = append(out.NonFinite, r)
		}
		if int(f)&voteFailed != 0 {
			out.Failed = append(out.Failed, r)
		}
		if int(f)&voteAbandon != 0 {
			out.Abandon = append(out.Abandon, r)
		}
		if int(f)&voteHold != 0 {
			out.Hold = append(out.Hold, r)
		}
	}
	return out, nil
}

func flags(v Vote) (f int) {
	if v.Stop {
		f |= voteStop
	}
	if v.NonFinite {
		f |= voteNonFinite
	}
	if v.Failed {
		f |= voteFailed
	}
	if v.Abandon {
		f |= voteAbandon
	}
	if v.Hold {
		f |= voteHold
	}
	return f
}

// ballot returns n float64 of memory that is reused between calls.
func (e *Engine) ballot(n int) comm.Mem {
	if e.vote.Elems < int64(n) {
		e.vote = comm.HostOf(make([]float64, n))
	}
	return e.vote.Slice(0, int64(n))
}

// between checks that no reduction is in progress, and returns the current step.
func (e *Engine) between(call string) (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return 0, e.err
	}
	if e.step.open && e.step.last {
		return 0, fmt.Errorf(
			"ddp: rank %d step %d: %s while gradients are reduced\nhint: call it before Begin or after Wait",
			e.comm.Rank(),
			e.step.number,
			call,
		)
	}
	return e.step.number, nil
}

// Any reports whether any list of ranks is not empty.
func (v Verdict) Any() bool {
	return slices.ContainsFunc([][]int{v.Stop, v.NonFinite, v.Failed, v.Abandon, v.Hold}, func(r []int) bool { return len(r) > 0 })
}
