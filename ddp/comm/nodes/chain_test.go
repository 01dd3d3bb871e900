package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

var spans = []comm.Span{comm.Inside, comm.Between, comm.Inside}

// sumByLevels adds up m: inside the host, between hosts, and gathers.
func sumByLevels(ctx context.Context, g []comm.Communicator, m comm.Mem) error {
	per := m.Elems / int64(g[0].Size())
	own := m.Slice(int64(g[0].Rank())*per, per)
	wait := comm.Wait(ctx)
	if err := wait(g[0].ReduceScatter(ctx, own, m, comm.Sum)); err != nil {
		return fmt.Errorf("scatter: %w", err)
	}
	if err := wait(g[1].AllReduce(ctx, own, comm.Sum)); err != nil {
		return fmt.Errorf("sum: %w", err)
	}
	if err := wait(g[2].AllGather(ctx, m, own)); err != nil {
		return fmt.Errorf("gather: %w", err)
	}
	return nil
}

func closeChain(g []comm.Communicator) {
	for i := len(g) - 1; i >= 0; i-- {
		g[i].Close()
	}
}

func checkChains(t *testing.T, g []comm.Communicator, nodeOf []int) {
	t.Helper()
	p, err := newPlaces(0, nodeOf)
	if err != nil {
		t.Fatal(err)
	}
	all(t, g, func(c *Comm) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if hosts, each := comm.Even(c); hosts != p.nodes() || each != p.most {
			return fmt.Errorf("%d hosts of %d ranks", hosts, each)
		}
		for range 2 { // the second chain has no count of its own
			chain, err := c.Chain(ctx, spans...)
			if err != nil {
				return err
			}
			for i, want := range [][2]int{{p.local[c.rank], p.most}, {p.nodeOf[c.rank], p.nodes()}, {p.local[c.rank], p.most}} {
				if got := [2]int{chain[i].Rank(), chain[i].Size()}; got != want {
					return fmt.Errorf("rank %d is %v in group %d, want %v", c.rank, got, i, want)
				}
			}
			if hosts, each := comm.Even(chain[0]); hosts != 0 || each != 0 {
				return errors.New("a group of one level has levels")
			}
			buf, err := c.Alloc(4 * 6000)
			if err != nil {
				return err
			}
			m := comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: 6000, DType: npu.F32}
			for step := range 3 {
				x := comm.View[float32](m)
				for j := range x {
					x[j] = float32((c.rank + 1) * (j + step))
				}
				if err := sumByLevels(ctx, chain, m); err != nil {
					return err
				}
				for j, v := range x {
					if want := float32(c.size() * (c.size() + 1) / 2 * (j + step)); v != want {
						return fmt.Errorf("element %d is %g, want %g", j, v, want)
					}
				}
			}
			if s := chain[1].Stats(); s.Calls != 3 || s.Bytes == 0 {
				return fmt.Errorf("%+v", s)
			}
			closeChain(chain)
		}
		return barrier(c)
	})
}

func TestChains(t *testing.T) {
	for _, name := range []string{"2x2", "2x3", "mixed"} {
		nodeOf := map[string][]int{"2x2": {0, 0, 1, 1}, "2x3": {0, 0, 0, 1, 1, 1}, "mixed": {1, 0, 1, 0}}[name]
		g := group(t, nodeOf, nil)
		checkChains(t, g, nodeOf)
		closeAll(g)
	}
}

// Where hosts have different numbers of ranks, and inside a chain, there are no levels; all ranks are told, and go on.
func TestNoChain(t *testing.T) {
	for _, nodeOf := range [][]int{{0, 1, 1}, {0, 0}} {
		g := group(t, nodeOf, nil)
		for r, err := range each(t, g, func(c *Comm) error {
			_, err := c.Chain(context.Background(), spans...)
			return err
		}) {
			if err == nil || !strings.Contains(err.Error(), "several nodes with as many ranks each") {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if hosts, each := comm.Even(g[0]); hosts != 0 || each != 0 {
			t.Errorf("%v: %d hosts of %d", nodeOf, hosts, each)
		}
		all(t, g, barrier)
		closeAll(g)
	}
	g := group(t, maps["2x2"], nil)
	defer closeAll(g)
	all(t, g, func(c *Comm) error {
		ctx := context.Background()
		chain, err := c.Chain(ctx, spans...)
		if err != nil {
			return err
		}
		defer closeChain(chain)
		if _, err := comm.Branch(ctx, chain[1]); err == nil {
			return errors.New("a group of one level has branched")
		}
		if _, err := comm.Chain(ctx, chain[0], spans...); err == nil {
			return errors.New("a group of one level has made a chain")
		}
		if _, err := chain[0].Send(ctx, comm.HostOf([]float32{1}), 1-chain[0].Rank()); err == nil {
			return errors.New("a group of one level sends messages")
		}
		return nil
	})
	for r, err := range each(t, g, func(c *Comm) error {
		if c.rank == 3 {
			_, err := c.Chain(context.Background(), comm.Inside, comm.Between)
			return err
		}
		_, err := c.Chain(context.Background(), spans...)
		return err
	}) {
		if m := (*comm.MismatchError)(nil); !errors.As(err, &m) || !strings.HasPrefix(m.Mine, "chain") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	all(t, g, barrier)
}

// Whoever waits in any group of a chain blames the rank that has not come to the first.
func TestLateInAChain(t *testing.T) {
	for late := range 4 {
		g := group(t, maps["2x2"], nil)
		release := make(chan struct{})
		time.AfterFunc(400*time.Millisecond, func() { close(release) })
		named := 0
		for r, err := range each(t, g, func(c *Comm) error {
			chain, err := c.Chain(context.Background(), spans...)
			if err != nil {
				return err
			}
			defer closeChain(chain)
			for i := range 2 {
				if c.rank == late && i == 1 {
					<-release
					return nil
				}
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				if i == 1 {
					cancel()
					ctx, cancel = context.WithTimeout(context.Background(), 150*time.Millisecond)
				}
				err := sumByLevels(ctx, chain, comm.HostOf(make([]float32, 64)))
				cancel()
				if err != nil {
					return err
				}
			}
			return nil
		}) {
			if e := (*comm.TimeoutError)(nil); errors.As(err, &e) {
				if named++; !slices.Equal(e.Missing, []int{late}) {
					t.Errorf("rank %d is late; rank %d names %v", late, r, e.Missing)
				}
			} else if r != late && err == nil {
				t.Errorf("rank %d does not notice that rank %d is late", r, late)
			}
		}
		if named == 0 {
			t.Errorf("nobody names rank %d", late)
		}
		closeAll(g)
	}
}

// A rank that gives up in a group of a chain is named with its rank in the job, and its reason, by all that wait in a group with it.
func TestAbortInAChain(t *testing.T) {
	g := group(t, maps["2x2"], nil)
	defer closeAll(g)
	for r, err := range each(t, g, func(c *Comm) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		chain, err := c.Chain(ctx, spans...)
		if err != nil {
			return err
		}
		defer closeChain(chain)
		if c.rank == 2 {
			for _, g := range chain {
				g.Abort(errors.New("no more"))
			}
		}
		err = sumByLevels(ctx, chain, comm.HostOf(make([]float32, 64)))
		if c.rank != 2 { // as the engine does
			for _, g := range chain {
				g.Abort(err)
			}
		}
		return err
	}) {
		if p := (*comm.PeerError)(nil); r != 2 && (!errors.As(err, &p) || p.Rank != 2 || p.Reason != "no more") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
