package ddp

import (
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// bars draws what the device did, in its own times, so that a trace shows reductions and the backward pass side by side.
type bars struct {
	step  int64
	ready time.Duration // when the gradients of the bucket before were complete, since the device was opened
	known bool
}

// draw emits the spans of a bucket that has landed.
func (b *bars) draw(f inFlight, emit func(Span)) {
	timed, ok := f.handle.(comm.Timed)
	if !ok {
		return
	}
	origin, begin, end, ok := timed.Times()
	if !ok {
		return
	}
	span := func(what string, begin, end time.Duration) {
		emit(Span{What: what, Step: f.step, Bucket: f.it.Bucket, Begin: origin.Add(begin), End: origin.Add(end)})
	}
	span("transfer", begin, end)
	if f.event == nil {
		b.known = false
		return
	}
	ready := f.event.At()
	if b.known && b.step == f.step && ready >= b.ready {
		span("compute", b.ready, ready)
	}
	b.step, b.ready, b.known = f.step, ready, true
}
