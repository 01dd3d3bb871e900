package shm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Work notes in this rank's block what it is at, and counts its beats there.
func (c *Comm) Work(what string) comm.Work {
	w := &work{c: c, what: what}
	w.note(what)
	w.Beat()
	return w
}

type work struct {
	c    *Comm
	what string
}

// Beat counts.
func (w *work) Beat() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if !w.c.closed {
		atomic.AddUint32(&w.c.v.block[w.c.rank].beats, 1)
	}
}

// End counts once more, and clears the note unless it is of other work that began meanwhile.
func (w *work) End() {
	if w.c.working() == short(w.what) {
		w.note("")
	}
	w.Beat()
}

// note writes what this rank is at.
func (w *work) note(what string) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.c.closed {
		return
	}
	text := &w.c.v.block[w.c.rank].work
	var b [8 * len(text)]byte
	copy(b[:], what)
	for i := range text {
		atomic.StoreUint64(&text[i], binary.NativeEndian.Uint64(b[8*i:]))
	}
}

// working is the note of this rank.
func (c *Comm) working() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ""
	}
	return c.v.block[c.rank].at()
}

// short is as much of a note as there is room for.
func short(what string) string { return what[:min(len(what), 8*len(block{}.work))] }

// at is what a rank says it is at, or "".
func (b *block) at() string {
	var text []byte
	for i := range b.work {
		text = binary.NativeEndian.AppendUint64(text, atomic.LoadUint64(&b.work[i]))
	}
	return strings.ToValidUTF8(strings.TrimRight(string(text), "\x00"), "")
}

// vigil watches ranks that are missing for signs of life.
type vigil struct {
	round  uint64
	begun  time.Time
	looked time.Time // last look
	seen   []pulse   // by rank; nil until the first look
}

// standstill is a pause between two looks, which come every slice, from which on this process itself did not run: it was stopped (Ctrl-Z), and the other
// ranks with it as a rule.
const standstill = time.Second

type pulse struct {
	beats uint32
	at    time.Time // of the last new beat
}

// over begins to watch, or goes on if this round is being waited for already.
func (v *vigil) over(round uint64, now time.Time) {
	if v.round != round || v.begun.IsZero() {
		v.round, v.begun, v.looked, v.seen = round, now, now, nil
	}
}

// lifeless are those of the missing ranks that have not beaten for the length of patience; nil if there is none.
func (v *vigil) lifeless(blocks []*block, missing []int, patience time.Duration, now time.Time) (late []int) {
	if v.seen == nil {
		v.seen = make([]pulse, len(blocks))
		for r, b := range blocks {
			v.seen[r] = pulse{atomic.LoadUint32(&b.beats), v.begun}
		}
	}
	if pause := now.Sub(v.looked); pause > standstill { // nobody's patience was tried meanwhile
		for r := range v.seen {
			v.seen[r].at = v.seen[r].at.Add(pause)
		}
	}
	v.looked = now
	for _, r := range missing {
		if n := atomic.LoadUint32(&blocks[r].beats); n != v.seen[r].beats {
			v.seen[r] = pulse{n, now}
		}
		if now.Sub(v.seen[r].at) >= patience {
			late = append(late, r)
		}
	}
	return late
}

// timeout is the error of a wait for ranks that did not come in time.
func (c *Comm) timeout(call string, t *trouble, late []int, now time.Time) error {
	e := &comm.TimeoutError{Call: call, After: now.Sub(t.vigil.begun), Missing: late}
	for _, r := range late {
		if at := c.v.block[r].at(); at != "" {
			e.Work = fmt.Sprintf("rank %d was at long work: %s", r, at)
			if s := t.vigil.seen; s != nil {
				e.Work += fmt.Sprintf("; last sign of life %v ago", now.Sub(s[r].at).Round(time.Millisecond))
			}
			break
		}
	}
	return e
}
