package predict

import (
	"sync/atomic"
)

// slot is room for one input, and for what comes of it.
type slot struct {
	fields [][]byte // memory that the device copies from
	logits []float32
	err    error
	done   chan struct{} // gets a token when logits or err are set
	state  atomic.Int32
}

// states of a slot in the queue
const (
	waiting int32 = iota
	abandoned
	finished
)

func (s *slot) reset() {
	s.logits, s.err = nil, nil
	s.state.Store(waiting)
}

// abandon reports whether nobody waits for the slot any more; false: it is finished already.
func (s *slot) abandon() bool { return s.state.CompareAndSwap(waiting, abandoned) }

// finish hands the result over. false: the caller has gone, and the slot is free.
func (s *slot) finish(logits []float32, err error) bool {
	s.logits, s.err = logits, err
	if !s.state.CompareAndSwap(waiting, finished) {
		return false
	}
	s.done <- struct{}{}
	return true
}
