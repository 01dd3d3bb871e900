package commtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Transport is the transport under test.
type Transport struct {
	// New makes a group of n ranks in this process; element r is rank r. The suite closes them.
	New func(t *testing.T, n int) []comm.Communicator
	// Kill makes a rank vanish silently, as if its process had died. nil skips those tests.
	Kill func(c comm.Communicator)
	// Sizes of groups; nil: 1, 2, 3, 4.
	Ranks []int
	// Device returns the device of a rank, for a transport that moves device memory: the suite then uses memory of the device and of Alloc, which it
	// fills and reads through streams. nil: host memory. New closes the devices, by t.Cleanup.
	Device func(c comm.Communicator) npu.Device
	// Supports tells which calls the transport can do; nil: all. Of a call that it cannot do, the suite requires that every rank refuses it with an
	// error of its own, and that the group stays usable.
	Supports func(comm.Call) bool
	// Loose is for hardware that sums floating-point numbers in an order of its own: their sums are then compared with the twin's within rounding. They
	// must still be equal on all ranks and from run to run. Integers, maxima and minima are compared bit by bit.
	Loose bool
	// Fatal is for transports that find a mismatch between ranks only when the data are under way: it then breaks the group. Some rank must still name the
	// mismatch, and every other rank gets a *comm.PeerError at least.
	Fatal bool
	// Deaf is for transports in which a rank does not hear from every other one (a ring, a tree): Took may then leave waiting and transfer mingled, and a
	// *comm.TimeoutError need not name a rank. It must not name a wrong one.
	Deaf bool

	// Alone is for a transport of which a process cannot have several groups at once.
	Alone bool

	// Nodes is for a transport that sums node by node: it gives the node of each of n ranks. The twin then sums inside each node in the order of ranks,
	// and the nodes' sums in the order of nodes, each sum of 16-bit floats in float32 with one rounding at its end. nil: all ranks on one node.
	Nodes func(n int) []int
	// Ring is for transports whose all-reduces of link.MinCrossover bytes or more go round a ring: each part is then summed from another rank on, and 16-bit
	// floats are rounded at every rank.
	Ring bool

	mem *memories
}

// patience is the deadline of calls that should succeed.
const patience = 60 * time.Second

// Run runs the suite.
func Run(t *testing.T, tr Transport) {
	if tr.Ranks == nil {
		tr.Ranks = []int{1, 2, 3, 4}
	}
	tr = tr.ready()
	t.Run("values", tr.values)
	t.Run("inplace", tr.inPlace)
	t.Run("empty", tr.empty)
	t.Run("flight", tr.flight)
	t.Run("ordered", tr.ordered)
	if slices.Max(tr.Ranks) == 1 {
		return // the other tests need peers
	}
	t.Run("large", tr.large)
	t.Run("pairs", tr.pairs)
	t.Run("refused", tr.refused)
	t.Run("mismatch", tr.mismatch)
	t.Run("waits", tr.waits)
	t.Run("dead", tr.dead)
	t.Run("abort", tr.abort)
	t.Run("close", tr.close)
	t.Run("alloc", tr.alloc)
	if tr.Device == nil {
		t.Run("consensus", tr.consensus) // the control communicator's task
	}
	t.Run("stats", tr.stats)
}

// waits has the tests that spend their time in waiting for deadlines. They run side by side, each with a group of its own.
func (tr Transport) waits(t *testing.T) {
	tests := map[string]func(*testing.T){"late": tr.late, "cancel": tr.cancel, "waitctx": tr.waitContext, "beats": tr.beats, "silent": tr.silent,
		"limit": tr.limit, "closed": tr.workClosed}
	var wg sync.WaitGroup
	for name, test := range tests {
		if tr.Alone {
			t.Run(name, test)
			continue
		}
		wg.Go(func() { t.Run(name, test) }) // more at once than t.Parallel, which counts processors
	}
	wg.Wait()
}

// ready makes what the suite needs.
func (tr Transport) ready() Transport {
	tr.mem = &memories{streams: map[comm.Communicator]npu.Stream{}}
	return tr
}

// supports reports whether the transport can do a call.
func (tr Transport) supports(call comm.Call) bool { return tr.Supports == nil || tr.Supports(call) }

// group creates a group and closes it at the end of the test.
func (tr Transport) group(t *testing.T, n int) []comm.Communicator {
	t.Helper()
	g := tr.New(t, n)
	if len(g) != n {
		t.Fatalf("New made %d ranks of %d", len(g), n)
	}
	for r, c := range g {
		if c.Rank() != r || c.Size() != n {
			t.Fatalf("element %d is rank %d of %d", r, c.Rank(), c.Size())
		}
	}
	t.Cleanup(func() {
		if err := tr.release(g); err != nil {
			t.Errorf("closing the suite's streams: %v", err)
		}
		for r, c := range g {
			if err := c.Close(); err != nil {
				t.Errorf("close of rank %d: %v", r, err)
			}
		}
	})
	return g
}

// each runs f for all ranks concurrently and returns their errors by rank. It fails the test if a rank does not return.
func each(t *testing.T, g []comm.Communicator, f func(ctx context.Context, c comm.Communicator) error) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs := make([]error, len(g))
	var wg sync.WaitGroup
	for r, c := range g {
		wg.Go(func() { errs[r] = f(ctx, c) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience + 10*time.Second):
		t.Fatal("a rank hangs")
	}
	return errs
}

// all is like each, but every rank must succeed.
func all(t *testing.T, g []comm.Communicator, f func(ctx context.Context, c comm.Communicator) error) {
	t.Helper()
	for r, err := range each(t, g, f) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// within fails the test if f takes longer than d.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > d {
		t.Errorf("took %v, want at most %v", took, d)
	}
}

// as is errors.As with a message.
func as[E error](r int, err error) (E, error) {
	var e E
	if !errors.As(err, &e) {
		return e, fmt.Errorf("rank %d: got %T (%v), want %T", r, err, err, e)
	}
	return e, nil
}
