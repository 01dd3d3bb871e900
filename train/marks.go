package train

import (
	"slices"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// marks are events on the compute stream that measure, in the device's own clock, where the time of a step is spent.
type marks struct {
	begin, backward, end npu.Event
	ready                []npu.Event // by bucket: its gradients are complete; the engine waits for this
	before, after        []npu.Event // by bucket: around its optimizer work
}

func newMarks(dev npu.Device, buckets int) (m marks, err error) {
	for _, e := range []*npu.Event{&m.begin, &m.backward, &m.end} {
		if *e, err = dev.NewEvent(); err != nil {
			return m, err
		}
	}
	for _, list := range []*[]npu.Event{&m.ready, &m.before, &m.after} {
		for range buckets {
			e, err := dev.NewEvent()
			if err != nil {
				return m, err
			}
			*list = append(*list, e)
		}
	}
	return m, nil
}

// times reads the marks of a step that was synchronised: how long the stream computed until the end of the backward pass, how long it then idled
// waiting for buckets, and how long it was busy in total.
func (m *marks) times() (compute, exposed, busy time.Duration) {
	compute = m.backward.At() - m.begin.At()
	last := m.backward.At()
	for k := range m.before {
		exposed += max(0, m.before[k].At()-last)
		last = m.after[k].At()
	}
	return compute, exposed, m.end.At() - m.begin.At() - exposed
}

func (m *marks) close() error {
	for _, e := range slices.Concat([]npu.Event{m.begin, m.backward, m.end}, m.ready, m.before, m.after) {
		if e != nil {
			if err := e.Close(); err != nil {
				return err
			}
		}
	}
	*m = marks{}
	return nil
}
