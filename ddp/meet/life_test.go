package meet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("never: " + what)
		}
	}
}

// What a rank says of itself reaches all others with the heartbeats.
func TestLife(t *testing.T) {
	groups := join(t, 3, func(c *Config) { c.Heartbeat = 50 * time.Millisecond })
	groups[1].Progress(12)
	eventually(t, "the number of calls arrives", func() bool { return groups[2].Life(1).Calls == 12 && groups[0].Life(1).Calls == 12 })
	before := groups[2].Life(1).Beats
	beat, end := groups[1].Work("writing a checkpoint")
	_, endInner := groups[1].Work("hashing")
	eventually(t, "the inner work arrives", func() bool { return groups[2].Life(1).Work == "hashing" })
	endInner()
	eventually(t, "the outer work arrives", func() bool { return groups[2].Life(1).Work == "writing a checkpoint" })
	for range 5 {
		beat()
	}
	eventually(t, "beats arrive", func() bool { return groups[2].Life(1).Beats >= before+8 }) // two begun, one ended, five beats
	end()
	end()
	eventually(t, "the end arrives", func() bool { return groups[2].Life(1).Work == "" && groups[2].Life(1).Beats == before+9 })
	if l := groups[1].Life(1); l.Calls != 12 || l.Beats != before+9 || l.Work != "" || l.Silent != 0 || l.Left {
		t.Errorf("in its own view: %+v", l)
	}
	if l := groups[2].Life(1); l.Left || l.Silent > 20*time.Second {
		t.Errorf("%+v", l)
	}
	if l := groups[2].Life(7); l != (Life{}) {
		t.Errorf("of no rank: %+v", l)
	}
}

// The pace of heartbeats is rank 0's.
func TestHeartbeatOfRankZero(t *testing.T) {
	groups := join(t, 2, func(c *Config) { c.Heartbeat = time.Duration(1+c.Rank) * time.Hour })
	if groups[1].beat != time.Hour {
		t.Error(groups[1].beat)
	}
	groups = join(t, 2, func(c *Config) { c.Heartbeat = -1 })
	if groups[1].beat != defaultBeat || groups[1].silence {
		t.Error(groups[1].beat, groups[1].silence)
	}
}

// A rank whose connection is open but from which nothing comes is given up after eight beats; with heartbeats off it is not.
func TestSilentRank(t *testing.T) {
	for _, rank := range []int{0, 2} {
		groups := join(t, 3, func(c *Config) { c.Heartbeat = 30 * time.Millisecond })
		begun := time.Now()
		mute(groups[rank])
		var others []*Group
		for _, g := range groups {
			if g.Rank() != rank {
				others = append(others, g)
			}
		}
		allFail(t, others, rank, "no sign of life for 240ms")
		if d := time.Since(begun); d < 100*time.Millisecond {
			t.Errorf("given up after %v already", d)
		}
	}
	groups := join(t, 3, func(c *Config) { c.Heartbeat = -1 })
	groups[0].coordinator.mu.Lock()
	groups[0].coordinator.watchdog.limit = time.Millisecond
	groups[0].coordinator.mu.Unlock()
	time.Sleep(700 * time.Millisecond)
	if err := groups[1].Err(); err != nil {
		t.Error(err)
	}
}

// mute stops everything that a rank sends, while its connections stay open, as SIGSTOP does.
func mute(g *Group) {
	stop := func(l *controlConn) {
		l.mu.Lock()
		l.muted = true
		l.mu.Unlock()
	}
	stop(g.control)
	if g.coordinator != nil {
		g.coordinator.mu.Lock()
		defer g.coordinator.mu.Unlock()
		for _, s := range g.coordinator.peers {
			stop(s.control)
		}
	}
}

func TestExchangeProblems(t *testing.T) {
	groups := join(t, 3, func(c *Config) { c.Timeouts.Exchange = 300 * time.Millisecond })
	onAll(groups, func(g *Group) {
		what := "link"
		if g.Rank() == 2 {
			what = "settings"
		}
		_, err := g.Exchange(t.Context(), what, nil)
		if err == nil || !strings.Contains(err.Error(), `"link"`) || !strings.Contains(err.Error(), `"settings"`) {
			t.Errorf("rank %d: %v", g.Rank(), err)
		}
	})
	onAll(groups[:2], func(g *Group) {
		_, err := g.Exchange(t.Context(), "link", nil)
		if err == nil || !strings.HasPrefix(err.Error(), "meet: exchange: after ") || !strings.Contains(err.Error(), "link: waiting for rank 2 of host h2\nhint: ") {
			t.Errorf("rank %d: %v", g.Rank(), err)
		}
	})
}

// A rank that comes after the others gave up learns that, and the next exchange is in step again.
func TestLateForExchange(t *testing.T) {
	groups := join(t, 2, nil)
	_, err := groups[0].gather(t.Context(), "exchange", "link", "exchange", all(2), nil, 50*time.Millisecond)
	var late *LateError
	if !errors.As(err, &late) {
		t.Error(err)
	}
	if _, err := groups[1].Exchange(t.Context(), "link", nil); err == nil ||
		!strings.Contains(err.Error(), "link: too late: rank 0 of host h0 gave up waiting for rank 1 of host h1") {
		t.Error(err)
	}
	onAll(groups, func(g *Group) {
		if all, err := g.Exchange(t.Context(), "settings", []byte{byte(g.Rank())}); err != nil || len(all) != 2 || all[1][0] != 1 {
			t.Error(all, err)
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := groups[0].Exchange(ctx, "link", nil); err != enough {
		t.Error(err)
	}
}
