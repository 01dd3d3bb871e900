package ddp

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// ready is a full bucket on its way to the issuer.
type ready struct {
	k     int
	step  int64
	event npu.Event
}

// inFlight is an issued bucket on its way to the completer.
type inFlight struct {
	k      int
	step   int64
	begin  time.Time
	handle comm.Handle
	ctx    context.Context
	cancel context.CancelFunc
}

// issuer waits for the event of a full bucket and issues its reduction. It owns the order of issue.
func (e *Engine) issuer() {
	defer e.wg.Done()
	defer close(e.flight)
	for {
		var r ready
		select {
		case r = <-e.issue:
		case <-e.broken:
			return
		}
		if r.k == 0 && e.cfg.VoteFirst { // Note [order of reduction]
			select {
			case <-e.voted:
			case <-e.broken:
				return
			}
		}
		f, err := e.start(r)
		if err != nil {
			e.fail(e.at(r.step, r.k, err))
			return
		}
		e.flight <- f
	}
}

func (e *Engine) start(r ready) (inFlight, error) {
	if r.event != nil {
		begin := time.Now()
		// This rank's own device, not a peer: a backward pass may take longer than a peer may be silent.
		ctx, cancel := context.WithTimeout(e.ctx, max(e.cfg.Timeout, e.cfg.LongWork))
		err := r.event.Sync(ctx) // the only place in a step where the host waits for the device
		cancel()
		if err != nil {
			return inFlight{}, fmt.Errorf("waiting for the device: %w", err)
		}
		e.trace("event", r.step, r.k, begin)
	}
	ctx, cancel := e.deadline(e.ctx)
	f := inFlight{k: r.k, step: r.step, begin: time.Now(), ctx: ctx, cancel: cancel}
	var err error
	if f.handle, err = e.comm.AllReduce(ctx, e.bkts[r.k].Mem, comm.Sum); err != nil {
		cancel()
		return f, err
	}
	return f, nil
}

// completer waits for reductions in order and passes them on.
func (e *Engine) completer() {
	defer e.wg.Done()
	for f := range e.flight {
		err := f.handle.Wait(f.ctx)
		if err != nil {
			// Memory may be freed once Close returns: ensure that no rank writes it any more.
			e.comm.Abort(err)
			<-f.handle.Done()
		}
		f.cancel()
		if err != nil {
			e.fail(e.at(f.step, f.k, err))
			continue
		}
		e.trace("reduce", f.step, f.k, f.begin)
		e.land(f)
	}
}

func (e *Engine) land(f inFlight) {
	b := &e.bkts[f.k]
	if e.cfg.OnBucket != nil {
		begin := time.Now()
		if err := e.cfg.OnBucket(f.k, b.Mem); err != nil {
			e.fail(e.at(f.step, f.k, err))
			return
		}
		e.trace("callback", f.step, f.k, begin)
	}
	transfer, waited := f.handle.Took()
	e.mu.Lock()
	e.stats.Transfer += transfer
	e.stats.Waited += waited
	e.stats.Bytes += b.Bytes
	e.stats.Buckets++
	e.step.done++
	all := e.step.done == len(e.bkts)
	e.mu.Unlock()
	if all {
		e.landed <- struct{}{}
	}
}

// at adds the location of an error.
func (e *Engine) at(step int64, k int, err error) error {
	return &StepError{Rank: e.comm.Rank(), Step: step, Bucket: k, Title: e.bkts[k].Title, Err: err}
}
