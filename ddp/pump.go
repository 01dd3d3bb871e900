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
	ready  npu.Event // reached when the gradients were complete; nil: it was known
	after  npu.Event // reached when the memory holds the sum; nil: when the handle is done
	ctx    context.Context
	cancel context.CancelFunc
}

// issuer issues the reduction of a full bucket, behind its event. It owns the order of issue.
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
		if f.after != nil {
			err = e.handOn(f)
		}
		e.flight <- f // also after an error: its handle must be waited for
		if err != nil {
			e.fail(e.at(r.step, r.k, err))
			return
		}
	}
}

// start issues a reduction: behind the event on the device if the transport can, else once the host has seen the event.
func (e *Engine) start(r ready) (f inFlight, err error) {
	ordered, _ := e.comm.(comm.Ordered)
	if r.event != nil && ordered == nil {
		if err := e.awaitDevice(r); err != nil {
			return f, err
		}
	}
	ctx, cancel := e.deadline(e.ctx)
	f = inFlight{k: r.k, step: r.step, begin: time.Now(), ready: r.event, ctx: ctx, cancel: cancel}
	m := e.bkts[r.k].Mem
	if r.event == nil || ordered == nil {
		f.handle, err = e.comm.AllReduce(ctx, m, comm.Sum)
	} else if f.handle, err = ordered.AllReduceAfter(ctx, r.event, m, comm.Sum); err == nil {
		on, ok := f.handle.(comm.OnDevice)
		if !ok {
			return f, e.drop(f, fmt.Errorf("transport %q: the handle of AllReduceAfter has no event", e.comm.Transport()))
		}
		f.after = on.Event()
	}
	if err != nil {
		cancel()
	}
	return f, err
}

// drop ends a reduction that cannot be used.
func (e *Engine) drop(f inFlight, err error) error {
	e.abort(err)
	<-f.handle.Done()
	f.cancel()
	return err
}

// awaitDevice makes the host wait until the kernels of a bucket have run.
func (e *Engine) awaitDevice(r ready) error {
	begin := time.Now()
	// This rank's own device, not a peer: a backward pass may take longer than a peer may be silent.
	ctx, cancel := context.WithTimeout(e.ctx, max(e.cfg.Timeout, e.cfg.LongWork))
	err := r.event.Sync(ctx) // the only place in a step where the host waits for the device
	cancel()
	if err != nil {
		return fmt.Errorf("waiting for the device: %w", err)
	}
	e.trace("event", r.step, r.k, begin)
	return nil
}

// completer waits for reductions in order. With a transport that is not ordered by events it also hands the buckets on.
func (e *Engine) completer() {
	defer e.wg.Done()
	var bars bars
	for f := range e.flight {
		err := f.handle.Wait(f.ctx)
		if err != nil {
			e.fail(e.at(f.step, f.k, err)) // first: what is still enqueued on the device is skipped once its owner knows
			e.abort(err)                   // also if the engine was broken before
			// Memory may be freed once Close returns: ensure that nothing writes it any more.
			<-f.handle.Done()
			f.cancel()
			continue
		}
		f.cancel()
		e.trace("reduce", f.step, f.k, f.begin)
		if e.cfg.Trace != nil {
			bars.draw(f, e.cfg.Trace)
		}
		if f.after == nil {
			if err := e.handOn(f); err != nil {
				e.fail(e.at(f.step, f.k, err))
				continue
			}
		}
		e.land(f)
	}
}

// handOn calls OnBucket.
func (e *Engine) handOn(f inFlight) error {
	if e.cfg.OnBucket == nil {
		return nil
	}
	begin := time.Now()
	if err := e.cfg.OnBucket(f.k, e.bkts[f.k].Mem, f.after); err != nil {
		return err
	}
	e.trace("callback", f.step, f.k, begin)
	return nil
}

// land counts a bucket that holds its sum.
func (e *Engine) land(f inFlight) {
	transfer, waited, apart := f.handle.Took()
	e.mu.Lock()
	e.stats.Transfer += transfer
	e.stats.Waited += waited
	if !apart {
		e.stats.Mingled++
	}
	e.stats.Bytes += e.bkts[f.k].Bytes
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
