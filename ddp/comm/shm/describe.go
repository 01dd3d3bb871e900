package shm

import "github.com/gotrain/gotrain/ddp/comm"

var _ comm.Describer = (*Comm)(nil)

// Describe returns one level. Shared memory has no link whose speed could be measured when ranks meet: the bound is memory bandwidth.
func (c *Comm) Describe() []comm.Level {
	l := comm.Level{Transport: c.Transport(), Ranks: c.size, Wire: c.Stats().Wire, Algorithm: func(call comm.Call) string {
		if call.Elems*int64(call.DType.Size()) <= c.smallBytes {
			return "slots"
		}
		return "in place"
	}}
	if c.crowded {
		l.Notes = append(l.Notes, "more ranks than processors: a rank that waits sleeps at once")
	}
	return []comm.Level{l}
}
