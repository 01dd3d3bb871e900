package ddp

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/schedule"
	"github.com/gotrain/gotrain/npu"
)

// ready is a collective on its way to the issuer of its lane.
type ready struct {
	it    schedule.Item
	step  int64
	coded bool
	event npu.Event // reached when the gradients are complete; nil: they are
}

// inFlight is an issued collective on its way to the completer.
type inFlight struct {
	ready
	begin  time.Time
	handle comm.Handle
	after  npu.Event // reached when the memory holds the sum; nil: when the handle is done, and the codec has finished
	ctx    context.Context
	cancel context.CancelFunc
}

// last reports whether the bucket needs no further collective.
func (e *Engine) last(r ready) bool { return !r.coded || e.coded.Plan().Last(r.it) }

// issuer issues the collectives of a lane, in the order of package schedule.
func (e *Engine) issuer(l *lane) {
	defer e.wg.Done()
	defer close(l.flight)
	for {
		var r ready
		select {
		case r = <-l.issue:
		case <-e.broken:
			return
		}
		f, err := e.start(l, r)
		if err != nil {
			e.fail(e.at(r, err))
			return
		}
		if f.after != nil {
			err = e.handOn(f)
		}
		l.flight <- f // also after an error: its handle must be waited for
		if err != nil {
			e.fail(e.at(r, err))
			return
		}
	}
}

// start issues a collective: behind the event on the device if the transport can, else once the host has seen the event.
func (e *Engine) start(l *lane, r ready) (f inFlight, err error) {
	group := l.of(r)
	if ordered, ok := group.(comm.Ordered); ok && (r.event != nil || r.coded) {
		return e.startAfter(ordered, r)
	}
	if r.event != nil && r.it.Phase == 0 {
		if err := e.awaitDevice(r); err != nil {
			return f, err
		}
	}
	f = inFlight{ready: r}
	if !r.coded {
		f.ctx, f.cancel = e.deadline(e.ctx)
		f.begin = time.Now()
		f.handle, err = group.AllReduce(f.ctx, e.bkts[r.it.Bucket].Mem, comm.Sum)
	} else {
		begin := time.Now()
		call, out, in, perr := e.codec.Prepare(r.it.Bucket, r.it.Phase)
		if perr != nil {
			return f, fmt.Errorf("codec %s, phase %d: %w", e.codec.Name(), r.it.Phase, perr)
		}
		e.trace("encode", r, begin)
		f.ctx, f.cancel = e.deadline(e.ctx)
		f.begin = time.Now()
		f.handle, err = comm.Do(f.ctx, group, call, out, in)
	}
	if err != nil {
		f.cancel()
	}
	return f, err
}

// startAfter issues a reduction that the device orders by events.
func (e *Engine) startAfter(ordered comm.Ordered, r ready) (f inFlight, err error) {
	m, ev := e.bkts[r.it.Bucket].Mem, r.event
	if r.coded {
		if m, ev, err = e.device.PrepareAfter(r.it.Bucket, ev); err != nil {
			return f, fmt.Errorf("codec %s: %w", e.codec.Name(), err)
		}
	}
	ctx, cancel := e.deadline(e.ctx)
	f = inFlight{ready: r, begin: time.Now(), ctx: ctx, cancel: cancel}
	if f.handle, err = ordered.AllReduceAfter(ctx, ev, m, comm.Sum); err != nil {
		cancel()
		return f, err
	}
	on, ok := f.handle.(comm.OnDevice)
	if !ok {
		return f, e.drop(f, fmt.Errorf("transport %q: the handle of AllReduceAfter has no event", e.comm.Transport()))
	}
	f.after = on.Event()
	if r.coded {
		if f.after, err = e.device.FinishAfter(r.it.Bucket, f.after); err != nil {
			return f, e.drop(f, fmt.Errorf("codec %s: %w", e.codec.Name(), err))
		}
	}
	return f, nil
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
	e.trace("event", r, begin)
	return nil
}

// completer waits for the collectives of a lane in order. With a transport that is not ordered by events it also hands the buckets on.
func (e *Engine) completer(l *lane) {
	defer e.wg.Done()
	var bars bars
	for f := range l.flight {
		err := f.handle.Wait(f.ctx)
		if err == nil && f.coded && f.after != nil {
			err = f.after.Sync(f.ctx) // the device decodes behind the handle
		}
		if err != nil {
			e.fail(e.at(f.ready, err)) // first: what is still enqueued on the device is skipped once its owner knows
			e.abort(err)               // also if the engine was broken before
			e.quiet(f.handle)          // memory may be freed once Close returns
			f.cancel()
			continue
		}
		f.cancel()
		e.trace("reduce", f.ready, f.begin)
		if e.cfg.Trace != nil {
			bars.draw(f, e.cfg.Trace)
		}
		if err := e.arrive(f); err != nil {
			e.fail(e.at(f.ready, err))
		}
	}
}

// arrive takes a bucket to its next phase, or hands it on.
func (e *Engine) arrive(f inFlight) error {
	if !e.last(f.ready) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.count(f)
		e.step.run.Done(f.it)
		e.advance()
		return nil
	}
	if f.after == nil {
		if f.coded {
			begin := time.Now()
			if err := e.codec.Finish(f.it.Bucket); err != nil {
				return fmt.Errorf("codec %s: %w", e.codec.Name(), err)
			}
			e.trace("decode", f.ready, begin)
		}
		if err := e.handOn(f); err != nil {
			return err
		}
	}
	e.land(f)
	return nil
}

// handOn calls OnBucket.
func (e *Engine) handOn(f inFlight) error {
	if e.cfg.OnBucket == nil {
		return nil
	}
	begin := time.Now()
	if err := e.cfg.OnBucket(f.it.Bucket, e.bkts[f.it.Bucket].Mem, f.after); err != nil {
		return err
	}
	e.trace("callback", f.ready, begin)
	return nil
}

// count adds the cost of a collective. mu is held.
func (e *Engine) count(f inFlight) {
	transfer, waited, apart := f.handle.Took()
	e.stats.Transfer += transfer
	e.stats.Waited += waited
	if !apart {
		e.stats.Mingled++
	}
}

// land counts a bucket that holds its sum.
func (e *Engine) land(f inFlight) {
	e.mu.Lock()
	e.count(f)
	if f.coded {
		e.step.run.Done(f.it)
		e.advance() // where one lane has all phases, the next bucket waits for this
	}
	e.stats.Bytes += e.bkts[f.it.Bucket].Bytes
	e.stats.Buckets++
	e.step.done++
	all := e.step.done == len(e.bkts)
	e.mu.Unlock()
	if all {
		e.landed <- struct{}{}
	}
}

// at adds the location of an error.
func (e *Engine) at(r ready, err error) error {
	return &StepError{Rank: e.comm.Rank(), Step: r.step, Bucket: r.it.Bucket, Title: e.bkts[r.it.Bucket].Title, Err: err}
}
