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

// Pulse is what a digest says of a rank.
type Pulse struct {
	Beat
	Silent uint64 // milliseconds since its last sign of life
	Left   bool
}

// AppendDigest appends the payload: a pulse for each rank.
func AppendDigest(b []byte, list []Pulse) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		b = list[i].Beat.append(b)
		b = appendBool(binary.AppendUvarint(b, list[i].Silent), list[i].Left)
	}
	return b
}

// ParseDigest parses the payload.
func ParseDigest(b []byte) ([]Pulse, error) {
	r := &reader{b: b}
	list := make([]Pulse, r.count(5))
	for i := range list {
		list[i] = Pulse{Beat: r.beat(), Silent: r.uint(), Left: r.bool()}
	}
	return list, r.end()
}
