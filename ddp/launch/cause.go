package launch

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"syscall"
	"time"
)

// records keeps the failure record of one rank: the first one of the process that wrote last. A wrapper may run several processes one after
// the other.
type records struct {
	mu   sync.Mutex
	last *Record
	busy map[int]string // by process
}

// run takes records from a pipe until it ends. What is not a record is skipped: whatever the rank started holds the pipe too.
func (k *records) run(r io.Reader) {
	lines := bufio.NewReaderSize(r, recordMax)
	for long := false; ; {
		b, err := lines.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
		if whole := err == nil && !long; whole {
			k.add(b)
		}
		long = err != nil
	}
}

func (k *records) add(line []byte) {
	var r Record
	if json.Unmarshal(line, &r) != nil || r.Time.IsZero() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.Busy != "":
		if k.busy == nil {
			k.busy = map[int]string{}
		}
		k.busy[r.PID] = r.Busy
	case r.Idle:
		delete(k.busy, r.PID)
	case k.last == nil || k.last.PID != r.PID:
		k.last = &r
	}
}

// doing is what a process of the rank must not be disturbed in, "" when nothing.
func (k *records) doing() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for pid, what := range k.busy {
		if syscall.Kill(pid, 0) != syscall.ESRCH { // else it died meanwhile
			return what
		}
	}
	return ""
}

func (k *records) get() *Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// own says whether a failed rank failed by itself: nobody ended it, or it had failed before; and it blames no other rank.
func (o Outcome) own() bool {
	if o.Record != nil {
		return len(o.others()) == 0
	}
	return !o.ByUs && o.Code != ExitUnavailable
}

// others are the other ranks that a rank blames.
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

// failedAfter is when a rank failed, since the start of the job. Its record is more exact than its end.
func (o Outcome) failedAfter() time.Duration {
	if o.Record != nil && o.recorded < o.After {
		return o.recorded
	}
	return o.After
}

// first picks the failure that caused the others:
//
//   - the earliest of the ranks that failed by themselves, where there is one;
//   - else a rank that others blame and that did not end by itself: it hung, and the launcher had to end it. By is the rank that blamed it first;
//   - else the earliest of those that gave up because of a peer (a record that blames, or ExitUnavailable);
//   - last those that the launcher ended, and that nobody blames.
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
			continue // only one that could say nothing itself
		}
		for _, v := range outs {
			if slices.Contains(v.others(), o.Rank) && (by == nil || v.failedAfter() < by.failedAfter()) {
				f, by = o, &v
			}
		}
	}
	return f, by, true
}
