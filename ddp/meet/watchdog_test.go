package meet

import (
	"fmt"
	"testing"
	"time"
)

func TestVigil(t *testing.T) {
	const beat = 500 * time.Millisecond
	start := time.Unix(0, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	v := newWatchdog(beat, 3, start)
	v.heard(0, start)
	v.heard(1, start)
	for ms := 500; ms <= 3500; ms += 500 {
		v.heard(0, at(ms))
		if s := v.look(at(ms)); s != nil {
			t.Errorf("after %d ms: %v silent", ms, s)
		}
	}
	v.heard(0, at(4000))
	if s := v.look(at(4000)); fmt.Sprint(s) != "[1]" { // rank 2 was never heard: it is not watched
		t.Errorf("after eight beats: %v silent", s)
	}
	if d := v.silent(1, at(4000)); d != 4*time.Second || v.silent(2, at(4000)) != 0 || v.silent(0, at(3000)) != 0 {
		t.Errorf("silent for %v", d)
	}
	v.rest(1)
	if s := v.look(at(4500)); s != nil {
		t.Errorf("%v silent, after leaving", s)
	}
}

// Time during which this process itself was suspended does not count as silence of the others.
func TestVigilOfSuspendedProcess(t *testing.T) {
	start := time.Unix(0, 0)
	v := newWatchdog(500*time.Millisecond, 1, start)
	v.heard(0, start)
	now := start
	for range 4 {
		now = now.Add(500 * time.Millisecond)
		v.look(now)
	}
	now = now.Add(time.Hour) // suspended
	if s := v.look(now); s != nil {
		t.Error("silent, but this process did not run")
	}
	if d := v.silent(0, now); d != 2*time.Second {
		t.Errorf("silent for %v, want the 2 s before the pause", d)
	}
	for range 3 {
		now = now.Add(500 * time.Millisecond)
		if s := v.look(now); s != nil {
			t.Errorf("silent %v after the pause", now.Sub(start)-time.Hour)
		}
	}
	if s := v.look(now.Add(500 * time.Millisecond)); s == nil {
		t.Error("still silent after eight beats of its own, but not found")
	}
	// A sign of life that came during the pause is not moved into the future.
	v = newWatchdog(500*time.Millisecond, 1, start)
	v.heard(0, start.Add(9*time.Second))
	v.look(start.Add(10 * time.Second))
	if d := v.silent(0, start.Add(10*time.Second)); d != 0 {
		t.Errorf("silent for %v", d)
	}
}
