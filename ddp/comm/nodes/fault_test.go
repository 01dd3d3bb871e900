package nodes

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

func barrier(c *Comm) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return comm.Wait(ctx)(c.Barrier(ctx))
}

// Every rank learns the first cause with its rank in the job, also a rank that shares no group with it.
func TestCauseReachesEveryRank(t *testing.T) {
	for name, nodeOf := range maps {
		for cause := range nodeOf {
			g := group(t, nodeOf, nil)
			for r, err := range each(t, g, func(c *Comm) error {
				if c.Rank() == cause {
					c.Abort(errors.New("out of paper"))
				}
				return barrier(c)
			}) {
				var p *comm.PeerError
				if r == cause {
					if err == nil || !strings.Contains(err.Error(), "out of paper") {
						t.Errorf("%s: rank %d itself: %v", name, r, err)
					}
				} else if !errors.As(err, &p) || p.Rank != cause || p.Reason != "out of paper" {
					t.Errorf("%s: rank %d aborts, rank %d: %v", name, cause, r, err)
				}
			}
			closeAll(g)
		}
	}
}

// The end of a branch is announced through its own groups only, and leaves the trunk alone.
func TestBranchBreaksAlone(t *testing.T) {
	for name, nodeOf := range maps {
		trunk, branch := branches(t, nodeOf)
		for r, err := range each(t, branch, func(c *Comm) error {
			if c.Rank() == 3 {
				c.Abort(errors.New("enough"))
			}
			return barrier(c)
		}) {
			var p *comm.PeerError
			if r != 3 && (!errors.As(err, &p) || p.Rank != 3 || p.Reason != "enough") {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
		closeAll(branch)
		all(t, trunk, barrier)
		closeAll(trunk)
	}
}

// A rank that breaks a group, which it did not call, is found by Check.
func TestCheck(t *testing.T) {
	g := group(t, maps["2+1+1"], nil)
	defer closeAll(g)
	for _, c := range g {
		if err := comm.Check(c); err != nil {
			t.Fatal(err)
		}
	}
	g[3].Abort(errors.New("enough"))
	for r, c := range g {
		if err := comm.Check(c); err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Ranks that wait for another node are not late: only the one that has not called is named, by every rank whose time is over.
func TestOnlyTheLateRankIsNamed(t *testing.T) {
	for name, nodeOf := range maps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup // they only wait
			for late := range nodeOf {
				wg.Go(func() { onlyLate(t, nodeOf, late) })
			}
			wg.Wait()
		})
	}
}

// onlyLate has all ranks but one in a barrier whose deadline passes.
func onlyLate(t *testing.T, nodeOf []int, late int) {
	g, err := NewLocal(nodeOf, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer closeAll(g)
	errs := make(chan error, len(g))
	for r, c := range g {
		if r == late {
			continue
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second) // enough for the others, on a busy machine
			defer cancel()
			errs <- comm.Wait(ctx)(c.Barrier(ctx))
		}()
	}
	named := false
	for range len(g) - 1 {
		err := <-errs
		if e := (*comm.TimeoutError)(nil); errors.As(err, &e) {
			named = true
			if !slices.Equal(e.Missing, []int{late}) {
				t.Errorf("rank %d is late, named are %v", late, e.Missing)
			}
		}
	}
	if !named {
		t.Errorf("rank %d is late, and nobody says so", late)
	}
}

// A message to another host needs a group of all ranks.
func TestMessagesRefused(t *testing.T) {
	g := group(t, maps["2x2"], func(c *Config) {
		c.Flat.Close()
		c.Flat = nil
	})
	defer closeAll(g)
	ctx := context.Background()
	if _, err := g[0].Send(ctx, comm.HostOf([]float32{1}), 2); err == nil || !strings.Contains(err.Error(), "rank 2 is on another host") {
		t.Error(err)
	}
	h, err := g[0].Send(ctx, comm.HostOf([]float32{7}), 1)
	if err != nil {
		t.Fatal(err)
	}
	got := []float32{0}
	if err := errors.Join(comm.Wait(ctx)(g[1].Recv(ctx, comm.HostOf(got), 0)), h.Wait(ctx)); err != nil || got[0] != 7 {
		t.Error(err, got)
	}
	all(t, g, barrier)
}

// A rank that makes a second group while others do something else is told so.
func TestBranchMismatch(t *testing.T) {
	g := group(t, maps["2x2"], nil)
	defer closeAll(g)
	for r, err := range each(t, g, func(c *Comm) error {
		if c.Rank() != 2 {
			return barrier(c)
		}
		_, err := c.Branch(context.Background())
		return err
	}) {
		var m *comm.MismatchError
		if !errors.As(err, &m) || (r == 2) != strings.HasPrefix(m.Mine, "branch") || (r == 2) == strings.HasPrefix(m.Its, "branch") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	all(t, g, barrier)
}
