package wire

import "encoding/binary"

// Gather is a rank's contribution to an exchange among ranks.
type Gather struct {
	Seq   uint64 // the rank's own number of this exchange, for the answer
	Key   string // exchanges with the same key and ranks belong together
	What  string // for messages; it must be the same on all ranks
	Ranks []int
	Limit uint64 // milliseconds that the rank waits
	Mine  []byte
}

// Append appends the payload.
func (g *Gather) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, g.Seq)
	b = appendText(appendText(b, g.Key), g.What)
	b = appendInts(b, g.Ranks)
	b = binary.AppendUvarint(b, g.Limit)
	return appendBytes(b, g.Mine)
}

// ParseGather parses the payload.
func ParseGather(b []byte) (g Gather, err error) {
	r := &reader{b: b}
	g.Seq, g.Key, g.What, g.Ranks, g.Limit, g.Mine = r.uint(), r.exact(), r.text(), r.ints(), r.uint(), r.bytes()
	return g, r.end()
}

// Gathered is the answer to a Gather: the contributions in the order of its ranks, or why there are none.
type Gathered struct {
	Seq     uint64
	Missing []int  // ranks that did not come in time
	Problem string // ranks disagree
	All     [][]byte
}

// Append appends the payload.
func (g *Gathered) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, g.Seq)
	b = appendInts(b, g.Missing)
	b = appendText(b, g.Problem)
	b = binary.AppendUvarint(b, uint64(len(g.All)))
	for _, v := range g.All {
		b = appendBytes(b, v)
	}
	return b
}

// ParseGathered parses the payload.
func ParseGathered(b []byte) (g Gathered, err error) {
	r := &reader{b: b}
	g.Seq, g.Missing, g.Problem = r.uint(), r.ints(), r.text()
	g.All = make([][]byte, r.count(1))
	for i := range g.All {
		g.All[i] = r.bytes()
	}
	return g, r.end()
}
