package ddp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/schedule"
	"github.com/gotrain/gotrain/npu"
)

// StepStats is the cost of the reduction of one step.
type StepStats struct {
	Step     int64
	Exposed  time.Duration // Wait blocked: communication that compute did not hide
	Transfer time.Duration // moving and summing, over all buckets
	Waited   time.Duration // waiting for the last rank to arrive, over all buckets
	Mingled  int           // buckets of which the transport cannot tell the two apart: Transfer has all their time
	Bytes    int64         // reduced, padding included
	Buckets  int
	Coded    Coded // what the codec did; zero for a step without one
}

// step is the state of the current step, guarded by Engine.mu.
type step struct {
	number  int64
	open    bool // between Begin and Wait
	last    bool // this micro-batch is reduced
	voted   bool // Vote was called
	missing []int
	full    []bool
	event   []npu.Event
	seen    []bool // by parameter
	filled  int    // full buckets
	done    int    // buckets landed
	coded   bool   // with the codec
	run     *schedule.Run

	unsettled bool // the codec waits for Settle
}

func (s *step) init(p *bucket.Plan) {
	s.missing = make([]int, len(p.Buckets))
	s.full = make([]bool, len(p.Buckets))
	s.event = make([]npu.Event, len(p.Buckets))
	s.seen = make([]bool, len(p.Params))
}

// Begin opens a micro-batch of a step. Only with last set are its gradients reduced; Ready calls of earlier ones do nothing, and
// they need no Wait. Step numbers are for messages and for Agree, which finds ranks that are out of step.
func (e *Engine) Begin(number int64, last bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	s := &e.step
	if s.open && s.last {
		return fmt.Errorf("ddp: rank %d: Begin of step %d before Wait of step %d", e.comm.Rank(), number, s.number)
	}
	e.settle(true)
	s.number, s.open, s.last = number, true, last
	s.filled, s.done, s.voted = 0, 0, false
	if last {
		e.choose()
	}
	e.stats = StepStats{Step: number}
	clear(s.full)
	clear(s.event)
	clear(s.seen)
	for k := range s.missing {
		s.missing[k] = len(e.bkts[k].Places)
	}
	return nil
}

// choose begins the order of a step that is reduced, with or without the codec. mu is held.
func (e *Engine) choose() {
	s := &e.step
	s.run, s.coded = e.plain, e.coded != nil && s.number >= e.cfg.CodecFrom
	if s.coded {
		s.run, s.unsettled = e.coded, true
		e.codec.Begin(s.number, e.scale)
	}
	s.run.Begin(e.cfg.VoteFirst)
}

// Ready marks gradient i as complete in memory. Once a bucket is full and those before it are issued, its reduction
// starts; its memory must not be touched until it has landed.
func (e *Engine) Ready(i int) error {
	at := time.Now()
	full, step, err := e.ready(i)
	if full >= 0 && e.cfg.Trace != nil {
		e.cfg.Trace(Span{What: "ready", Step: step, Bucket: full, Begin: at, End: at})
	}
	return err
}

// ready returns the bucket that gradient i has filled, or -1.
func (e *Engine) ready(i int) (full int, step int64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.accepting("Ready"); err != nil || !e.step.last {
		return -1, 0, err
	}
	if i < 0 || i >= len(e.step.seen) {
		return -1, 0, fmt.Errorf("ddp: rank %d: Ready of parameter %d of %d", e.comm.Rank(), i, len(e.step.seen))
	}
	if e.step.seen[i] {
		return -1, 0, fmt.Errorf(
			"ddp: rank %d step %d: gradient of %s is ready twice\nhint: hand in a parameter that is used in several places once, after its last use",
			e.comm.Rank(),
			e.step.number,
			e.plan.Params[i].Name,
		)
	}
	e.step.seen[i] = true
	k, _ := e.plan.Of(i)
	if e.step.missing[k]--; e.step.missing[k] > 0 {
		return -1, 0, nil
	}
	e.fill(k)
	return k, e.step.number, nil
}

// ReadyBucket marks all gradients of bucket k as complete when ev is reached (nil: they are complete now). It is for an
// executor that has just enqueued the kernel that completes the bucket: a goroutine of the engine waits for the event, the caller does not.
func (e *Engine) ReadyBucket(k int, ev npu.Event) error {
	at := time.Now()
	full, step, err := e.readyBucket(k, ev)
	if full && e.cfg.Trace != nil {
		e.cfg.Trace(Span{What: "ready", Step: step, Bucket: k, Begin: at, End: at})
	}
	return err
}

func (e *Engine) readyBucket(k int, ev npu.Event) (full bool, step int64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.accepting("ReadyBucket"); err != nil || !e.step.last {
		return false, 0, err
	}
	if k < 0 || k >= len(e.bkts) {
		return false, 0, fmt.Errorf("ddp: rank %d: ReadyBucket of bucket %d of %d", e.comm.Rank(), k, len(e.bkts))
	}
	if e.step.full[k] || e.step.missing[k] != len(e.bkts[k].Places) {
		return false, 0, fmt.Errorf("ddp: rank %d step %d: bucket %d (%s) is ready twice", e.comm.Rank(), e.step.number, k, e.bkts[k].Title)
	}
	e.step.missing[k] = 0
	for _, pl := range e.bkts[k].Places {
		e.step.seen[pl.Param] = true
	}
	e.step.event[k] = ev
	e.fill(k)
	return true, e.step.number, nil
}

func (e *Engine) accepting(call string) error {
	if e.err != nil {
		return e.err
	}
	if !e.step.open {
		return fmt.Errorf("ddp: rank %d: %s outside of a step\nhint: call Begin first", e.comm.Rank(), call)
	}
	return nil
}

// fill marks bucket k full, and issues what may be issued now.
func (e *Engine) fill(k int) {
	s := &e.step
	s.full[k] = true
	s.filled++
	s.run.Ready(k)
	e.advance()
}

// Wait closes the step: it blocks until all buckets hold their sums and every OnBucket call returned. After a micro-batch that was not
// the last it returns immediately. A gradient that was never handed in is an error that names it, here and on the peers. When ctx ends first, its error
// is returned and Wait may be called again.
func (e *Engine) Wait(ctx context.Context) (StepStats, error) {
	begin := time.Now()
	e.mu.Lock()
	s := &e.step
	switch {
	case e.err != nil:
		defer e.mu.Unlock()
		return e.stats, e.err
	case !s.open:
		defer e.mu.Unlock()
		return e.stats, fmt.Errorf("ddp: rank %d: Wait outside of a step\nhint: call Begin first", e.comm.Rank())
	case !s.last:
		defer e.mu.Unlock()
		s.open = false
		return e.stats, nil
	case s.filled < len(s.full):
		err := e.unready()
		e.mu.Unlock()
		e.fail(err)
		return e.sofar(), err
	case e.cfg.VoteFirst && !s.voted:
		err := fmt.Errorf("ddp: rank %d step %d: Wait without a Vote\nhint: with Config.VoteFirst every reduced step needs one", e.comm.Rank(), s.number)
		e.mu.Unlock()
		e.fail(err)
		return e.sofar(), err
	}
	number := s.number
	e.mu.Unlock()

	if len(e.bkts) > 0 {
		select {
		case <-e.landed:
		case <-e.broken:
			return e.sofar(), e.Err()
		case <-ctx.Done():
			return e.sofar(), fmt.Errorf("ddp: rank %d step %d: waiting for gradients: %w", e.comm.Rank(), number, context.Cause(ctx))
		}
	}
	e.trace("wait", ready{step: number, it: schedule.Item{Bucket: -1}}, begin)
	e.mu.Lock()
	defer e.mu.Unlock()
	s.open = false
	e.stats.Exposed = time.Since(begin)
	if s.coded {
		e.stats.Coded = e.codec.Coded()
	}
	return e.stats, e.err
}

// sofar reads the counters while the completer may still update them.
func (e *Engine) sofar() StepStats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// unready names the gradients that are missing at Wait.
func (e *Engine) unready() error {
	var names []string
	for i, ok := range e.step.seen {
		if !ok {
			names = append(names, e.plan.Params[i].Name)
		}
	}
	more := ""
	if len(names) > 8 {
		more = fmt.Sprintf(" and %d more", len(names)-8)
		names = names[:8]
	}
	return fmt.Errorf(
		"ddp: rank %d step %d: gradients never became ready: %s%s\n"+
			"hint: remove parameters that the loss does not use from Config.Params, or hand them in with a zero gradient",
		e.comm.Rank(),
		e.step.number,
		strings.Join(names, ", "),
		more,
	)
}
