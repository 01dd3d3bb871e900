package hccl

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// route is how the data of a call travel.
type route int64

const (
	nowhere  route = iota // there are none
	byDevice              // by HCCL
	byHost                // in host memory, through the group of the announcements
)

func (r route) String() string { return [...]string{"no", "device", "host"}[r] }

// call is a collective in progress, and its Handle.
type call struct {
	c       *Comm
	what    comm.Call
	out, in comm.Mem
	ctx     context.Context
	number  int64
	route   route
	after   npu.Event // the call is ordered behind it; nil: it is not
	ordered bool      // its end must be an event, even if there are no data

	begin, end npu.Event     // on the rail; nil: the call does not use it
	issued     chan struct{} // closed when begin and end are recorded, or never will be

	// Written by the completer before done is closed.
	err              error
	transfer, waited time.Duration
	mingled          bool          // transfer and waited are not known apart
	first, last      time.Duration // since the device was opened: begin and end of the collective on the device
	origin           time.Time     // when the device was opened
	done             chan struct{}
}

// name is the call with its number, for messages.
func (k *call) name() string { return k.what.Number(k.number) }

// Done is closed on completion.
func (k *call) Done() <-chan struct{} { return k.done }

// Took is the time of the transfer, and of waiting for the last rank before. The announcements tell when that was; of a message, the
// group that carries it.
func (k *call) Took() (transfer, waited time.Duration, apart bool) {
	select {
	case <-k.done:
		return k.transfer, k.waited, !k.mingled
	default:
		return 0, 0, false
	}
}

// Times are when the device ran the collective.
func (k *call) Times() (origin time.Time, begin, end time.Duration, ok bool) {
	select {
	case <-k.done:
		return k.origin, k.first, k.last, k.begin != nil && k.err == nil
	default:
		return time.Time{}, 0, 0, false
	}
}

// Wait blocks until completion or until ctx ends.
func (k *call) Wait(ctx context.Context) error {
	select {
	case <-k.done:
		return k.err
	default:
	}
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
	}
	if k.ctx.Err() != nil { // the call ends as well, with a better error
		select {
		case <-k.done:
			return k.err
		case <-time.After(verdictTime):
		}
	}
	return fmt.Errorf("comm: waiting for %s: %w", k.name(), context.Cause(ctx))
}

// verdictTime is how long the error of a call may take after its deadline.
const verdictTime = 5 * time.Second

// onDevice is the handle of a call whose completion is an event.
type onDevice struct{ *call }

var (
	_ comm.OnDevice = onDevice{}
	_ comm.Timed    = onDevice{}
)

// Event is recorded behind the collective.
func (k onDevice) Event() npu.Event { return k.end }
