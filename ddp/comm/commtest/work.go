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

// work has rank 0 at long work while the others wait for it.
func (tr Transport) work(t *testing.T) {
	const what = "counting all the leaves"
	barrier := func(c comm.Communicator, limit time.Duration) error {
		ctx, cancel := comm.Patient(context.Background(), short, limit)
		defer cancel()
		return comm.Wait(ctx)(c.Barrier(ctx))
	}
	// late requires that rank 0 alone is named, with its work.
	late := func(t *testing.T, errs []error) {
		t.Helper()
		for r, err := range errs[1:] {
			if peer := (*comm.PeerError)(nil); errors.As(err, &peer) { // another rank's timeout came first
				continue
			}
			e, err := as[*comm.TimeoutError](r+1, err)
			if err != nil {
				t.Error(err)
			} else if !tr.blames(e, 0) || len(e.Missing) > 0 && !strings.Contains(e.Error(), what) {
				t.Errorf("rank %d: %v", r+1, e)
			}
		}
	}
	t.Run("beats", func(t *testing.T) { // three times as long as patience
		g := tr.group(t, slices.Max(tr.Ranks))
		all(t, g, func(_ context.Context, c comm.Communicator) error {
			if c.Rank() == 0 {
				end := comm.Steady(c, what, nil)
				time.Sleep(3 * short)
				end()
				end()
			}
			return barrier(c, patience)
		})
	})
	t.Run("silent", func(t *testing.T) { // it reported work, and hangs
		g := tr.group(t, slices.Max(tr.Ranks))
		var wg sync.WaitGroup
		wg.Add(len(g) - 1)
		late(t, each(t, g, func(_ context.Context, c comm.Communicator) error {
			if c.Rank() == 0 {
				c.Work(what).Beat()
				wg.Wait()
				return nil
			}
			defer wg.Done()
			return barrier(c, patience)
		}))
	})
	t.Run("limit", func(t *testing.T) { // it beats for ever
		g := tr.group(t, slices.Max(tr.Ranks))
		var wg sync.WaitGroup
		wg.Add(len(g) - 1)
		late(t, each(t, g, func(_ context.Context, c comm.Communicator) error {
			if c.Rank() == 0 {
				defer comm.Steady(c, what, nil)()
				wg.Wait()
				return nil
			}
			defer wg.Done()
			return barrier(c, 2*short)
		}))
	})
	t.Run("closed", func(t *testing.T) {
		g := tr.group(t, 2)
		w := g[0].Work(what)
		g[0].Close()
		w.Beat()
		w.End()
	})
}
