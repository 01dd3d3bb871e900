package comm

import (
	"context"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// Ordered is a Communicator whose reductions are ordered by events of the device instead of by the host.
//
// The caller records ev on the stream whose kernels write m, and then calls AllReduceAfter. The reduction runs behind ev, on a stream of the
// transport; the host does not wait. If the work before ev failed, the reduction fails with that error.
type Ordered interface {
	// AllReduceAfter is AllReduce behind the latest Record of ev, which must not be recorded again before the handle is done. Every Handle that it
	// returns is an OnDevice.
	AllReduceAfter(ctx context.Context, ev npu.Event, m Mem, op Op) (Handle, error)
}

// OnDevice is a Handle whose completion is also an event of the device, so that a stream can wait for it.
type OnDevice interface {
	Handle
	// Event is recorded (enqueued) behind the collective when the call that issued it returns. It belongs to the transport, which does not record it
	// again before Wait of the handle has returned; a stream that waits for it later waits for at most a later collective of the same communicator.
	// If the collective fails, the event is reached with an error where the device can tell it: a stream that waits for it then fails and skips the
	// work that would have read the memory. Handle.Wait returns the error in any case.
	Event() npu.Event
}

// Timed is a Handle that tells when the device ran the collective.
type Timed interface {
	Handle
	// Times are begin and end since the device was opened (npu.Event.At), and when that was, within a millisecond or so; valid after Wait. ok is false
	// for a call that the device did not run.
	Times() (origin time.Time, begin, end time.Duration, ok bool)
}

// Watcher is a Communicator that knows, without a call in progress, whether its group is broken. A data communicator asks its control communicator
// while it waits for the device: peers announce there that they abort, and the control communicator sees their processes end.
type Watcher interface {
	// Check returns nil, or the error that the next call would return: this rank or a peer aborted, or the process of a peer ended. A peer that closed
	// its communicator in order is no error. It is cheap enough for ten calls a second.
	Check() error
}

// Check returns the error that broke c, if c can tell.
func Check(c Communicator) error {
	if w, ok := c.(Watcher); ok {
		return w.Check()
	}
	return nil
}
