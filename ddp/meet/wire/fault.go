package wire

import "encoding/binary"

// Fault says which rank failed, and why: as a report the view of one rank, from the coordinator the first cause.
type Fault struct {
	Rank   int
	Host   string // from the coordinator
	Reason string
	Own    bool // as a report: the rank itself gives up with this reason
}

// Append appends the payload.
func (f *Fault) Append(b []byte) []byte {
	b = binary.AppendVarint(b, int64(f.Rank))
	return appendBool(appendText(appendText(b, f.Host), f.Reason), f.Own)
}

// ParseFault parses the payload.
func ParseFault(b []byte) (f Fault, err error) {
	r := &reader{b: b}
	f.Rank, f.Host, f.Reason, f.Own = r.small(maxRank), r.text(), r.text(), r.bool()
	return f, r.end()
}
