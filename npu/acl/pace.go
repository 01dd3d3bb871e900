//go:build cgo && linux

package acl

import "github.com/gotrain/gotrain/npu/acl/cann"

// pace keeps CANN from getting too far ahead of the device, because what CANN has cannot be skipped, and because a stream of CANN has room for some number
// of tasks only: a call blocks when it is full, and with it the thread, which could not even abort a collective that hangs. After every paceStep calls
// of operators there is a mark; beyond two of them the stream waits. How much room there is was not seen on an NPU.
type pace struct {
	count int           // calls since the latest mark
	marks [2]cann.Event // the older one first
}

const paceStep = 128

// full reports whether no launch may be given to CANN now.
func (s *stream) full() (bool, error) {
	p := &s.pace
	if p.count < paceStep {
		return false, nil
	}
	if p.marks[0] != 0 {
		ok, err := s.passed(&p.marks[0])
		if err != nil {
			return false, err
		}
		if !ok {
			return true, nil
		}
	}
	m, err := s.mark()
	if err != nil {
		return false, err
	}
	p.marks[0], p.marks[1], p.count = p.marks[1], m, 0
	return false, nil
}

func (p *pace) clear(t *thread) {
	for i, m := range p.marks {
		t.retire(m)
		p.marks[i] = 0
	}
}
