package commtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// short is the patience of these tests: long enough for a beat to get through on a busy machine.
const short = time.Second

// leaves is the long work of rank 0 in the tests below, while the others wait for it.
const leaves = "counting all the leaves"

func patientBarrier(c comm.Communicator, limit time.Duration) error {
	ctx, cancel := comm.Patient(context.Background(), short, limit)
	defer cancel()
	return comm.Wait(ctx)(c.Barrier(ctx))
}

// beats tests work that takes longer than the others' patience.
func (tr Transport) beats(t *testing.T) {
	g := tr.group(t, slices.Max(tr.Ranks))
	all(t, g, func(_ context.Context, c comm.Communicator) error {
		if c.Rank() == 0 {
			end := comm.Steady(c, leaves, nil)
			time.Sleep(2 * short)
			end()
			end()
		}
		return patientBarrier(c, patience)
	})
}

// silent tests a rank that reported work, and hangs.
func (tr Transport) silent(t *testing.T) {
	tr.lateAtWork(t, patience, func(c comm.Communicator) func() {
		c.Work(leaves).Beat()
		return func() {}
	})
}

// limit tests a rank that beats for ever.
func (tr Transport) limit(t *testing.T) {
	tr.lateAtWork(t, 2*short, func(c comm.Communicator) func() { return comm.Steady(c, leaves, nil) })
}

// lateAtWork has rank 0 work until the others have given up, and requires that they name it alone, with its work.
func (tr Transport) lateAtWork(t *testing.T, limit time.Duration, work func(comm.Communicator) (end func())) {
	t.Helper()
	g := tr.group(t, slices.Max(tr.Ranks))
	var wg sync.WaitGroup
	wg.Add(len(g) - 1)
	errs := each(t, g, func(_ context.Context, c comm.Communicator) error {
		if c.Rank() == 0 {
			defer work(c)()
			wg.Wait()
			return nil
		}
		defer wg.Done()
		return patientBarrier(c, limit)
	})
	for r, err := range errs[1:] {
		if peer := (*comm.PeerError)(nil); errors.As(err, &peer) { // another rank's timeout came first
			continue
		}
		e, err := as[*comm.TimeoutError](r+1, err)
		if err != nil {
			t.Error(err)
		} else if !tr.blames(e, 0) || len(e.Missing) > 0 && !strings.Contains(e.Error(), leaves) {
			t.Errorf("rank %d: %v", r+1, e)
		}
	}
}

// workClosed tests beats after Close.
func (tr Transport) workClosed(t *testing.T) {
	g := tr.group(t, 2)
	w := g[0].Work(leaves)
	g[0].Close()
	w.Beat()
	w.End()
}
