package meet

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// blaming is an error that holds other ranks responsible.
type blaming []int

func (b blaming) Error() string { return "a collective broke" }
func (b blaming) Blames() []int { return b }

// allFail waits until all ranks have failed, and checks that they name the same rank and reason.
func allFail(t *testing.T, groups []*Group, rank int, reason string) {
	t.Helper()
	for r, g := range groups {
		if g == nil {
			continue
		}
		select {
		case <-g.Down():
		case <-time.After(20 * time.Second):
			t.Errorf("rank %d has not noticed", r)
			continue
		}
		var f *Fault
		if err := g.Err(); !errors.As(err, &f) || f.Rank != rank || !strings.Contains(f.Reason, reason) || f.Host != fmt.Sprint("h", rank) {
			t.Errorf("rank %d: %v, want rank %d: %s", r, err, rank, reason)
		} else if f.ExitCode() != 69 || fmt.Sprint(f.Blames()) != fmt.Sprintf("[%d]", rank) {
			t.Errorf("rank %d: exit code %d, blames %v", r, f.ExitCode(), f.Blames())
		}
	}
}

func TestAbort(t *testing.T) {
	for _, rank := range []int{0, 2} {
		groups := join(t, 4, nil)
		groups[rank].Abort(errors.New("loss is NaN"))
		allFail(t, groups, rank, "loss is NaN")
		if _, err := groups[1].Exchange(t.Context(), "x", nil); err != groups[1].Err() {
			t.Error(err)
		}
		if _, err := groups[1].Connect(t.Context(), 1, all(4)); err != groups[1].Err() {
			t.Error(err)
		}
		if err := groups[3].Report(1, "reset"); err != groups[3].Err() {
			t.Error(err)
		}
		groups[1].Abort(errors.New("later"))
	}
}

// A victim that aborts blames another rank; what that one says itself counts more.
func TestVictims(t *testing.T) {
	groups := join(t, 4, nil)
	var wg sync.WaitGroup
	for _, r := range []int{0, 1, 3} {
		wg.Go(func() { groups[r].Abort(blaming{r, 2}) })
	}
	time.Sleep(50 * time.Millisecond)
	groups[2].Abort(errors.New("disk full"))
	wg.Wait()
	allFail(t, groups, 2, "disk full")

	groups = join(t, 3, nil)
	groups[1].Abort(blaming{2})
	allFail(t, groups, 2, "rank 1 reports: a collective broke")
}

// A connection between two ranks breaks: both report the other, and all ranks name one of them.
func TestReport(t *testing.T) {
	groups := join(t, 3, nil)
	begun := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, 3)
	wg.Go(func() { errs[1] = groups[1].Report(2, "connection reset") })
	wg.Go(func() {
		time.Sleep(50 * time.Millisecond)
		errs[2] = groups[2].Report(1, "connection reset")
	})
	wg.Wait()
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("the verdict took %v", d)
	}
	allFail(t, groups, 2, "rank 1 reports: connection reset")
	if errs[1] != groups[1].Err() || errs[2] != groups[2].Err() {
		t.Errorf("%v; %v", errs[1], errs[2])
	}
	if err := groups[0].Report(9, "x"); err == nil {
		t.Error("there is no rank 9")
	}
}

// The process of a rank ends: its control connection says so at once, before the reports about it.
func TestLostRank(t *testing.T) {
	for _, rank := range []int{0, 2} {
		groups := join(t, 4, nil)
		lose(groups[rank])
		others := append(append([]*Group{}, groups[:rank]...), groups[rank+1:]...)
		begun := time.Now()
		for _, g := range others {
			err := g.Report(rank, "end of stream")
			var f *Fault
			if !errors.As(err, &f) || f.Rank != rank || !strings.Contains(f.Reason, "its process ended without giving a reason") {
				t.Errorf("rank %d: %v", g.Rank(), err)
			}
		}
		if d := time.Since(begun); d > 5*time.Second {
			t.Errorf("noticed after %v", d)
		}
	}
}

// lose closes what the kernel closes when a process ends.
func lose(g *Group) {
	if g.coordinator != nil {
		g.coordinator.acceptor.listener.Close()
		g.coordinator.mu.Lock()
		for _, s := range g.coordinator.peers {
			s.control.conn.Close()
		}
		g.coordinator.mu.Unlock()
	}
	g.data.acceptor.listener.Close()
	g.control.conn.Close()
}

// Ranks leave in order, rank 0 first, in the middle or last: nobody takes it for a failure, and rank 0 waits.
func TestLeaving(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}} {
		groups := join(t, 3, nil)
		var wg sync.WaitGroup
		for _, r := range order {
			wg.Go(func() { groups[r].Close() })
			time.Sleep(50 * time.Millisecond)
			for _, g := range groups {
				if err := g.Err(); err != nil {
					t.Errorf("order %v, rank %d left: rank %d: %v", order, r, g.Rank(), err)
				}
			}
		}
		wg.Wait()
		if err := groups[1].Err(); err != nil {
			t.Error(err)
		}
	}
}

// A rank that has left is no failure when its connections end, and a Report about it says so.
func TestReportOfLeftRank(t *testing.T) {
	groups := join(t, 3, nil)
	groups[2].Close()
	err := groups[1].Report(2, "end of stream")
	if err == nil || !strings.Contains(err.Error(), "it has left the job in order (end of stream)") {
		t.Error(err)
	}
	if l := groups[1].Life(2); !l.Left || l.Silent > time.Minute {
		t.Errorf("%+v", l)
	}
	time.Sleep(decide + 200*time.Millisecond)
	if err := groups[0].Err(); err != nil {
		t.Error(err)
	}
	if groups[1].Life(0).Left {
		t.Error("rank 0 has not left")
	}
	// A failure after that is still one.
	groups[1].Abort(errors.New("late trouble"))
	allFail(t, groups[:2], 1, "late trouble")
}

// Rank 0 does not wait for ever. The others then go on alone, without taking it for a failure.
func TestRankZeroLeavesBeforeOthers(t *testing.T) {
	var said notes
	groups := join(t, 3, func(c *Config) { c.Timeouts.End, c.Warn = 300*time.Millisecond, said.add })
	groups[0].Close()
	if s := said.String(); !strings.Contains(s, "rank 0 leaves the job after waiting 300ms for rank 1 of host h1 and rank 2 of host h2, which have not left") {
		t.Error(s)
	}
	for _, g := range groups[1:] {
		<-g.bye
		if !g.Life(0).Left || g.Err() != nil {
			t.Errorf("rank %d: %+v, %v", g.Rank(), g.Life(0), g.Err())
		}
		if err := g.Report(1+g.Rank()%2, "end of stream"); err == nil {
			t.Error("Report without an answer")
		}
		g.Abort(errors.New("nobody hears it"))
		if _, err := g.Exchange(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "the job is over") {
			t.Error(err)
		}
	}
}

// After Close there are no goroutines and no sockets left, whatever happened before.
func TestNothingLeaks(t *testing.T) {
	for name, do := range map[string]func(groups []*Group){
		"in order":       func([]*Group) {},
		"after an abort": func(groups []*Group) { groups[1].Abort(errors.New("x")) },
		"after a loss":   func(groups []*Group) { lose(groups[2]); <-groups[1].Down() },
		"with connections that nobody took": func(groups []*Group) {
			for r := range 2 {
				if _, err := groups[2].dial(t.Context(), r, 77); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			groups := join(t, 3, nil)
			conns := make([][]interface{ Close() error }, 3)
			onAll(groups, func(g *Group) {
				list, err := g.Connect(t.Context(), 1, all(3))
				if err != nil {
					t.Error(err)
				}
				for _, c := range list {
					if c != nil {
						conns[g.Rank()] = append(conns[g.Rank()], c)
					}
				}
			})
			do(groups)
			begun := time.Now()
			closeAll(groups)
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("leaving took %v", d)
			}
			for _, list := range conns {
				for _, c := range list {
					c.Close()
				}
			}
			for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(until) {
					b := make([]byte, 1<<16)
					t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
				}
			}
		})
	}
}
