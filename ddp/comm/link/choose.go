package link

import (
	"fmt"
	"strings"
	"time"
)

// Between these, a measured crossover is believed: below the first a step always costs more than its bytes, above the second never.
const (
	MinCrossover = 4 << 10
	MaxCrossover = 256 << 10
)

// Small calls of more ranks than crowd go through rank 0: in an exchange every rank would send to all, which switches do not carry well. Above tiny
// bytes they do not.
const (
	crowd = 32
	tiny  = 64 << 10
)

// Crossover is the number of bytes from which a topology uses its large algorithm: where the model says that the two cost the same, within the limits of
// what is believed.
func (l Link) Crossover(t Topology, w int) int64 {
	top := float64(MaxCrossover)
	small, _ := pair(t, w)
	if small == Gather {
		top = tiny
	}
	if t == Ring && w > 1 {
		return MinCrossover // a user of the ring has a network without the bandwidth for everybody at once
	}
	return int64(min(max(l.Equal(t, w), MinCrossover), top))
}

// Equal is the number of bytes at which the small and the large algorithm of a topology cost the same in the model, without limits; infinite if the small
// one is always faster, and 0 if it never is.
func (l Link) Equal(t Topology, w int) float64 {
	small, large := pair(t, w)
	steps := l.allReduce(large, w, 0) - l.allReduce(small, w, 0)
	const n = 1 << 20
	bytes := ((l.allReduce(small, w, n) - l.allReduce(small, w, 0)) - (l.allReduce(large, w, n) - l.allReduce(large, w, 0))) / n
	if steps <= 0 {
		return 0
	}
	return steps / max(bytes, 1e-300)
}

// pair is the small and the large algorithm of a topology.
func pair(t Topology, w int) (small, large Algorithm) {
	small, large = Exchange, Direct
	if w > crowd {
		small = Gather
	}
	switch t {
	case Tree:
		return Gather, Chain
	case Ring:
		return small, Circle
	}
	return small, large
}

// Choose is the algorithm of an all-reduce of n bytes over w ranks.
func (l Link) Choose(t Topology, w int, n int64) Algorithm {
	small, large := pair(t, w)
	if n < l.Crossover(t, w) {
		return small
	}
	return large
}

// Reduced is the time of an all-reduce with the algorithm that Choose takes.
func (l Link) Reduced(t Topology, w int, n int64) time.Duration {
	return l.AllReduce(l.Choose(t, w, n), w, n)
}

// Row is a line of the table of choices: from From bytes on, Algorithm, which takes Time for From bytes, or for a kibibyte in the first row.
type Row struct {
	From      int64         `json:"from"`
	Algorithm Algorithm     `json:"-"`
	Name      string        `json:"algorithm"`
	Time      time.Duration `json:"time_ns"`
}

// Table lists which algorithm serves which sizes; two rows, or one if a group has no other rank.
func (l Link) Table(t Topology, w int) []Row {
	small, large := pair(t, w)
	if w < 2 {
		return []Row{{Algorithm: small, Name: small.String()}}
	}
	from := l.Crossover(t, w)
	return []Row{
		{Algorithm: small, Name: small.String(), Time: l.AllReduce(small, w, 1<<10)},
		{From: from, Algorithm: large, Name: large.String(), Time: l.AllReduce(large, w, from)},
	}
}

// Says is the table as a sentence: "exchange below 21 KiB, mesh from there (4 ranks, 9.4 Gbit/s, 25µs)".
func (l Link) Says(t Topology, w int) string {
	rows := l.Table(t, w)
	if len(rows) == 1 {
		return "one rank: nothing to send"
	}
	b := fmt.Sprintf("%s below %s, %s from there (%d ranks, %v)", rows[0].Name, Size(rows[1].From), rows[1].Name, w, l)
	if !t.Ordered() {
		b += "; a ring's sums differ from those of other topologies by rounding"
	}
	return b
}

// Size writes a size of a message: "21 KiB".
func Size(n int64) string {
	switch {
	case n >= 10<<20 && n%(1<<20) == 0 || n >= 100<<20:
		return fmt.Sprintf("%d MiB", (n+1<<19)>>20)
	case n >= 1<<20:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MiB"
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", (n+1<<9)>>10)
	}
	return fmt.Sprintf("%d B", n)
}
