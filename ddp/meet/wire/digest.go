package wire

import (
	"encoding/binary"
	"slices"
)

// Pulse is what a digest says of a rank.
type Pulse struct {
	Beat
	Silent uint64 // milliseconds since its last sign of life, if beats are missing; else 0
	Left   bool
}

// Note [digests]
//
// Everybody gets the state of everybody, twice a second, so bytes grow with the square of the ranks. A digest therefore has only what changed since the
// one before: of a rank that is training and well, two or three bytes. A digest without one before it has everything.
//
// The payload is the number of ranks, whether there is one before it (0 or 1), and the number of entries, one for each rank that changed, or for
// each rank. An entry begins with how many ranks without one come before it, times two; plus one if nothing but calls grew, and then by how many.
// Otherwise all fields follow.

// leastEntry is the size of the smallest entry with all fields.
const leastEntry = 6

// AppendDigest appends the payload: how every rank is, for a reader that knows how it was. was is nil for a reader that knows nothing.
func AppendDigest(b []byte, was, is []Pulse) []byte {
	changed := func(i int) bool { return was == nil || was[i] != is[i] }
	entries := uint64(0)
	for i := range is {
		if changed(i) {
			entries++
		}
	}
	b = appendBool(binary.AppendUvarint(b, uint64(len(is))), was != nil)
	b = binary.AppendUvarint(b, entries)
	skip := uint64(0)
	for i := range is {
		q := &is[i]
		switch {
		case !changed(i):
			skip++
			continue
		case was != nil && q.Calls > was[i].Calls && (Pulse{Beat{q.Calls, was[i].Beats, was[i].Work}, was[i].Silent, was[i].Left}) == *q:
			b = binary.AppendUvarint(binary.AppendUvarint(b, skip<<1|1), uint64(q.Calls-was[i].Calls))
		default:
			b = q.Beat.append(binary.AppendUvarint(b, skip<<1))
			b = appendBool(binary.AppendUvarint(b, q.Silent), q.Left)
		}
		skip = 0
	}
	return b
}

// ParseDigest parses the payload for a reader that knows how ranks were, and returns how they are.
func ParseDigest(b []byte, was []Pulse) ([]Pulse, error) {
	r := &reader{b: b}
	n, follows, entries := r.uint(), r.bool(), r.uint()
	switch {
	case r.bad || entries > n:
		return nil, ErrMalformed
	case follows && n != uint64(len(was)):
		return nil, ErrMalformed
	case !follows && (entries != n || n > uint64(len(r.b)/leastEntry)): // nothing is allocated because a number says so
		return nil, ErrMalformed
	}
	is := slices.Clone(was)
	if !follows {
		is = make([]Pulse, n)
	}
	at := uint64(0)
	for range entries {
		head := r.uint()
		if at += head >> 1; r.bad || at >= n {
			return nil, ErrMalformed
		}
		if head&1 == 1 {
			is[at].Calls += int64(r.uint())
		} else {
			is[at] = Pulse{Beat: r.beat(), Silent: r.uint(), Left: r.bool()}
		}
		at++
	}
	return is, r.end()
}
