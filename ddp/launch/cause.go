package launch

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"
)

// records keeps the failure record of one rank: the first one of the process that wrote last. A wrapper may run several processes in
// sequence.
type records struct {
	mu   sync.Mutex
	last *Record
	at   time.Duration  // when last was made, since the start of the job
	busy map[int]string // by process
	stop int            // exit code of the program that stopped on request; 0: none did
}

// recordPump takes the records of one rank.
type recordPump func(Record)

// run reads records from a pipe until EOF. It skips anything else: children of the rank inherit the pipe too.
func (take recordPump) run(r io.Reader) {
	lines := bufio.NewReaderSize(r, recordMax)
	for long := false; ; {
		b, err := lines.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
		if whole := err == nil && !long; whole {
			var rec Record
			if json.Unmarshal(b, &rec) == nil && !rec.Time.IsZero() {
				take(rec)
			}
		}
		long = err != nil
	}
}

// since is the age of a time, never negative.
func since(t time.Time) time.Duration { return max(0, time.Since(t)) }

func (k *records) add(r Record, at time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.Stopped != 0:
		k.stop = r.Stopped
	case r.Busy != "":
		if k.busy == nil {
			k.busy = map[int]string{}
		}
		k.busy[r.PID] = r.Busy
	case r.Idle:
		delete(k.busy, r.PID)
	case k.last == nil || k.last.PID != r.PID:
		k.last, k.at = &r, at
	}
}

// stopped returns the exit code of a program that stopped on request, or 0.
func (k *records) stopped() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stop
}

// doing names work of the rank that must not be interrupted, or returns "".
func (k *records) doing(alive func(pid int) bool) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for pid, what := range k.busy {
		if alive(pid) { // else it died meanwhile
			return what
		}
	}
	return ""
}

// get returns the failure record, and when it was made, since the start of the job.
func (k *records) get() (*Record, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, k.at
}

// own reports whether a failed rank failed by itself: the supervisor did not end it, or it had failed before, and it blames no other rank.
func (o Outcome) own() bool {
	if o.Record != nil {
		return len(o.others()) == 0 && !o.Record.Victim
	}
	return o.Lost != "" || !o.ByUs && o.Code != ExitUnavailable
}

// others returns the other ranks that a rank blames.
func (o Outcome) others() (out []int) {
	if o.Record == nil {
		return nil
	}
	for _, r := range o.Record.Blames {
		if r != o.Rank {
			out = append(out, r)
		}
	}
	return out
}

// failedAfter returns when a rank failed, since the start of the job. The record is more exact than the exit.
func (o Outcome) failedAfter() time.Duration {
	if o.Record != nil && o.recorded < o.After {
		return o.recorded
	}
	return o.After
}

// first picks the failure that caused the others:
//
//   - the earliest rank that failed by itself, if any;
//   - otherwise a rank that others blame and that did not exit by itself: it hung, and the launcher had to kill it. by is the rank that blamed it first;
//   - otherwise the earliest rank that gave up because of a peer (a record that blames or of a victim, or ExitUnavailable);
//   - finally a rank that the launcher ended and that no other rank blames.
func first(outs []Outcome) (f Outcome, by *Outcome, failed bool) {
	class := func(o Outcome) int {
		switch {
		case o.own():
			return 0
		case !o.ByUs:
			return 1
		}
		return 2
	}
	for _, o := range outs {
		if o.OK() {
			continue
		}
		if !failed || class(o) < class(f) || class(o) == class(f) && o.failedAfter() < f.failedAfter() {
			f, failed = o, true
		}
	}
	if !failed || class(f) == 0 {
		return f, nil, failed
	}
	for _, o := range outs {
		if o.OK() || !o.ByUs || o.Record != nil {
			continue // only a rank that could not report by itself
		}
		for _, v := range outs {
			if slices.Contains(v.others(), o.Rank) && (by == nil || v.failedAfter() < by.failedAfter()) {
				f, by = o, &v
			}
		}
	}
	return f, by, true
}

// apart returns a rank of another host that the first failed rank gave up, or that gave up that one, if both reported it and ended by themselves: then no rank
// has failed, but the network between their hosts. A time-out (124) is another matter: ranks that wait in different places are late for each other.
func apart(f Outcome, outs []Outcome) *Outcome {
	lost := func(o Outcome) bool {
		return o.Record != nil && o.Code == ExitUnavailable && !o.own() && !o.ByUs && o.Lost == ""
	}
	if !lost(f) {
		return nil
	}
	for _, o := range outs {
		if o.Host != f.Host && lost(o) && (slices.Contains(f.others(), o.Rank) || slices.Contains(o.others(), f.Rank)) {
			return &o
		}
	}
	return nil
}

// frozen reports whether only such ranks still run that others, which have ended, gave up: a longer time to end is of no use to them.
func (s *supervisor) frozen() bool {
	blamed := map[int]bool{}
	for _, o := range s.ended {
		if o.Record, _ = s.ranks[o.Rank-s.First].said.get(); o.Code == ExitUnavailable {
			for _, r := range o.others() {
				blamed[r] = true
			}
		}
	}
	for i, r := range s.ranks {
		if said, _ := r.said.get(); !r.gone && (said != nil || !blamed[s.First+i]) {
			return false
		}
	}
	return len(blamed) > 0
}
