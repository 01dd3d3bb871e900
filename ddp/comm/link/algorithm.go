package link

import (
	"fmt"
	"math/bits"
	"time"
)

// Algorithm is a way to reduce over all ranks.
type Algorithm uint8

// The algorithms of the package comment.
const (
	Exchange Algorithm = iota
	Direct             // the mesh
	Gather
	Chain
	Circle // the ring
)

var algorithms = [...]string{Exchange: "exchange", Direct: "mesh", Gather: "gather", Chain: "chain", Circle: "ring"}

func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a]
	}
	return fmt.Sprintf("Algorithm(%d)", a)
}

// AllReduce is the time of an all-reduce of n bytes over w ranks.
func (l Link) AllReduce(a Algorithm, w int, n int64) time.Duration {
	return seconds(l.allReduce(a, w, float64(n)))
}

func (l Link) allReduce(a Algorithm, w int, n float64) float64 {
	if w < 2 {
		return 0
	}
	var (
		alpha = l.Latency.Seconds()
		o     = float64(w-2) * l.PerPeer.Seconds()
		beta  = 1 / l.Bandwidth
		gamma = l.Reduce
		v     = float64(w)
	)
	switch a {
	case Exchange:
		return alpha + o + (v-1)*n*(beta+gamma)
	case Gather:
		return alpha + o + (v-1)*n*(beta+gamma) + float64(bits.Len(uint(w-1)))*(alpha+n*beta)
	case Direct:
		return 2*(alpha+o) + 2*(v-1)/v*n*beta + (v-1)/v*n*gamma
	case Chain:
		if w == 2 { // the result returns while the input still goes out
			return 2*alpha + n*beta + n*gamma
		}
		return 2*(v-1)*alpha + 2*n*beta + n*gamma
	case Circle:
		return 2*(v-1)*alpha + 2*(v-1)/v*n*beta + (v-1)/v*n*gamma
	}
	panic("link: " + a.String())
}

// Scatter is the time of a reduce-scatter of n bytes (all parts together): the first half of a mesh.
func (l Link) Scatter(w int, n int64) time.Duration {
	return seconds(l.half(w, float64(n)) + l.Reduce*float64(n)*over(w))
}

// Share is the time of an all-gather, or of an all-to-all, of n bytes (all parts together): the second half of a mesh.
func (l Link) Share(w int, n int64) time.Duration { return seconds(l.half(w, float64(n))) }

// half is one round of a mesh: every rank sends a part to every other.
func (l Link) half(w int, n float64) float64 {
	if w < 2 {
		return 0
	}
	return l.Latency.Seconds() + float64(w-2)*l.PerPeer.Seconds() + over(w)*n/l.Bandwidth
}

// over is the part of the bytes that leaves a rank in one round.
func over(w int) float64 { return float64(w-1) / float64(w) }

// Bound is the least time that the wire allows for an all-reduce of n bytes: 2(w−1)/w·n of them pass every card.
func (l Link) Bound(w int, n int64) time.Duration {
	if w < 2 {
		return 0
	}
	return seconds(2 * over(w) * float64(n) / l.Bandwidth)
}
