package wire

import "encoding/binary"

// Beat is the sign of life of a rank.
type Beat struct {
	Calls int64  // collectives issued
	Beats uint64 // of long work
	Work  string // the long work, or ""
}

func (v *Beat) append(b []byte) []byte {
	b = binary.AppendVarint(b, v.Calls)
	b = binary.AppendUvarint(b, v.Beats)
	return appendText(b, v.Work)
}

func (r *reader) beat() Beat { return Beat{Calls: r.int(), Beats: r.uint(), Work: r.text()} }

// Append appends the payload.
func (v *Beat) Append(b []byte) []byte { return v.append(b) }

// ParseBeat parses the payload.
func ParseBeat(b []byte) (Beat, error) {
	r := &reader{b: b}
	v := r.beat()
	return v, r.end()
}
