package hccl

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Note [announcements]
//
// HCCL tells neither which rank is missing, nor that a peer died, nor that ranks call different collectives: it hangs until its own timeout, half an
// hour by default, and then says that something timed out. So ranks announce each call to each other, on the host: an all-gather of four words for
// each collective (number, kind with its arguments, elements, route). It gives at once: a rank that does not come is named by the deadline of the
// all-gather, with its long work; a dead peer ends it; differing calls are found, every one of them; and the time at which the last rank arrived is known.
//
// By default the announcement follows the collective: a rank announces a call when its own device has reached it, and nothing waits for the
// announcement but the goroutine that completes handles. With "before" (hccl_check, for finding mistakes) HCCL gets a call only after all ranks have
// announced the same: a mismatch then leaves the group usable, at the price of a round trip for each call.
//
// The announcements have a group of their own, a branch of the control communicator (comm.Branch). They could not share the control communicator: its
// users call it from other goroutines (a vote runs while buckets are reduced), so the order of calls would differ between ranks. Send and Recv of the
// control communicator, which have an order of their own, would take a message for each pair of ranks and call, would mix with those of its
// users, and do not tell a missing rank until somebody waits for it.

// words of an announcement.
const words = 4

// Kinds that a rank announces when it closes, and when a collective does not end.
const (
	goodbye = 255
	stall   = 254
)

// answerTime is how long a rank may take to announce anything after a collective has stalled.
const answerTime = 2 * time.Second

// announce exchanges the call with all ranks and returns the mismatch that it finds. Any other error ends the group.
func (c *Comm) announce(ctx context.Context, k *call) (*comm.MismatchError, error) {
	if c.size == 1 {
		return nil, nil
	}
	all, err := c.exchange(ctx, [words]int64{k.number, int64(k.what.Key()), k.what.Elems, int64(k.route)})
	if err != nil {
		return nil, renamed(c.rank, k.name(), err)
	}
	mine := all[c.rank]
	for r, its := range all {
		if comm.Kind(its[1]) == goodbye {
			return nil, &comm.PeerError{Rank: r, Call: k.name(), Reason: "it closed its communicator"}
		}
		if comm.Kind(its[1]) == stall {
			return nil, &comm.PeerError{Rank: r, Call: k.name(), Reason: fmt.Sprintf("its collective #%d does not end", its[0])}
		}
		if its == mine {
			continue
		}
		e := &comm.MismatchError{Rank: c.rank, Peer: r, Mine: k.name(), Its: comm.CallOf(uint64(its[1]), its[2]).Number(its[0])}
		if e.Mine == e.Its {
			e.Mine += " in " + route(mine[3]).String() + " memory"
			e.Its += " in " + route(its[3]&3).String() + " memory"
		}
		return e, nil
	}
	return nil, nil
}

// exchange gathers an announcement of each rank. It ends early when the group breaks.
func (c *Comm) exchange(ctx context.Context, mine [words]int64) ([][words]int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(c.fault()) })()
	flat := make([]int64, words*c.size)
	if err := comm.Wait(ctx)(c.posts.AllGather(ctx, comm.HostOf(flat), comm.HostOf(mine[:]))); err != nil {
		if why := c.fault(); why != nil {
			return nil, why
		}
		return nil, err
	}
	all := make([][words]int64, c.size)
	for r := range all {
		copy(all[r][:], flat[words*r:])
	}
	return all, nil
}

// patient applies HCCL_TIMEOUT to the context of a call: the shorter patience counts.
func (c *Comm) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if p := comm.Patience(ctx); c.timeout > 0 && (p == 0 || p > c.timeout) {
		return comm.Patient(ctx, c.timeout, max(c.timeout, c.longWork))
	}
	return ctx, func() {}
}

// lookEvery is the pause between looks at the group while a call waits for the device.
const lookEvery = 50 * time.Millisecond
