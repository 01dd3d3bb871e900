package wire

import (
	"encoding/binary"
	"net/netip"
)

// Member is a rank in a roster.
type Member struct {
	Rank      int
	Node      int
	LocalRank int
	Host      string
	Machine   string
	Addr      netip.AddrPort
	PID       int
	Version   string
	Device    string
}

func (m *Member) append(b []byte) []byte {
	b = appendInts(b, []int{m.Rank, m.Node, m.LocalRank})
	b = appendText(appendText(b, m.Host), m.Machine)
	b = appendAddr(b, m.Addr)
	b = binary.AppendUvarint(b, uint64(m.PID))
	return appendText(appendText(b, m.Version), m.Device)
}

func (r *reader) member() (m Member) {
	if n := r.ints(); len(n) == 3 {
		m.Rank, m.Node, m.LocalRank = n[0], n[1], n[2]
	} else {
		r.bad = true
	}
	m.Host, m.Machine = r.text(), r.exact()
	m.Addr = r.addr()
	if pid := r.uint(); pid <= 1<<31 {
		m.PID = int(pid)
	} else {
		r.bad = true
	}
	m.Version, m.Device = r.text(), r.text()
	return m
}

// Join is what a rank tells the coordinator of itself. Node and LocalRank of Member are what its launcher said, or -1.
type Join struct {
	Member
	Network    string // equal for ranks that can reach each other's loopback addresses
	LocalWorld int    // what the launcher said
	Nodes      int
	AtZero     bool // it reached the coordinator by a loopback address, so its listener has the coordinator's address
}

// Append appends the payload.
func (j *Join) Append(b []byte) []byte {
	b = j.Member.append(b)
	b = appendText(b, j.Network)
	return appendBool(appendInts(b, []int{j.LocalWorld, j.Nodes}), j.AtZero)
}

// ParseJoin parses the payload.
func ParseJoin(b []byte) (j Join, err error) {
	r := &reader{b: b}
	j.Member, j.Network = r.member(), r.exact()
	if n := r.ints(); len(n) == 2 {
		j.LocalWorld, j.Nodes = n[0], n[1]
	} else {
		r.bad = true
	}
	j.AtZero = r.bool()
	return j, r.end()
}

// Roster is the list of all ranks, and what the coordinator decided for them.
type Roster struct {
	Members []Member
	Nonce   string // of the meeting
	Beat    int64  // microseconds between signs of life; below 0: silence is never a failure
}

// Append appends the payload.
func (s *Roster) Append(b []byte) []byte {
	b = appendText(b, s.Nonce)
	b = binary.AppendVarint(b, s.Beat)
	b = binary.AppendUvarint(b, uint64(len(s.Members)))
	for i := range s.Members {
		b = s.Members[i].append(b)
	}
	return b
}

// ParseRoster parses the payload.
func ParseRoster(b []byte) (s Roster, err error) {
	r := &reader{b: b}
	s.Nonce = r.text()
	s.Beat = r.int()
	for range r.count(8) {
		if s.Members = append(s.Members, r.member()); r.bad {
			break
		}
	}
	return s, r.end()
}
