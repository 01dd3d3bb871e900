package shm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Work records the work in this rank's block, and counts its beats there.
func (c *Comm) Work(what string) comm.Work {
	if c.trunk != nil {
		return c.trunk.Work(what)
	}
	w := &work{c: c, what: what}
	w.note(what)
	w.Beat()
	return w
}

type work struct {
	c    *Comm
	what string
}

// Beat counts one beat.
func (w *work) Beat() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if !w.c.closed {
		atomic.AddUint32(&w.c.v.block[w.c.rank].beats, 1)
	}
}

// End counts a last beat, and clears the note unless other work has begun meanwhile.
func (w *work) End() {
	if w.c.working() == short(w.what) {
		w.note("")
	}
	w.Beat()
}

// note writes the current work of this rank.
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

// working returns the note of this rank.
func (c *Comm) working() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ""
	}
	return c.v.block[c.rank].at()
}

// short truncates a note to the available space.
func short(what string) string { return what[:min(len(what), 8*len(block{}.work))] }

// at returns the work that a rank reports, or "".
func (b *block) at() string {
	var text []byte
	for i := range b.work {
		text = binary.NativeEndian.AppendUint64(text, atomic.LoadUint64(&b.work[i]))
	}
	return strings.ToValidUTF8(strings.TrimRight(string(text), "\x00"), "")
}

// vigil watches missing ranks for signs of life.
type vigil struct {
	round  uint64
	begun  time.Time
	looked time.Time // last look
	seen   []pulse   // by rank; nil until the first look
}

// standstill is the pause between two looks, which normally come every slice, above which this process itself did not run: it was suspended (Ctrl-Z),
// usually with the other ranks.
const standstill = time.Second

type pulse struct {
	beats uint32
	at    time.Time // of the last new beat
}

// over begins to watch, or continues if this round is already being watched.
func (v *vigil) over(round uint64, now time.Time) {
	if v.round != round || v.begun.IsZero() {
		v.round, v.begun, v.looked, v.seen = round, now, now, nil
	}
}

// lifeless returns the missing ranks that have not beaten for the duration of patience, or nil.
func (v *vigil) lifeless(blocks []*block, missing []int, patience time.Duration, now time.Time) (late []int) {
	if v.seen == nil {
		v.seen = make([]pulse, len(blocks))
		for r, b := range blocks {
			v.seen[r] = pulse{atomic.LoadUint32(&b.beats), v.begun}
		}
	}
	if pause := now.Sub(v.looked); pause > standstill { // the pause is not silence of the peers
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

// timeout returns the error of a wait for ranks that did not arrive in time.
func (c *Comm) timeout(call string, t *trouble, late []int, now time.Time) error {
	e := &comm.TimeoutError{Call: call, After: now.Sub(t.vigil.begun), Missing: late}
	for _, r := range late {
		if at := c.life[r].at(); at != "" {
			e.Work = fmt.Sprintf("rank %d was at long work: %s", r, at)
			if s := t.vigil.seen; s != nil {
				e.Work += fmt.Sprintf("; last sign of life %v ago", now.Sub(s[r].at).Round(time.Millisecond))
			}
			break
		}
	}
	return e
}
