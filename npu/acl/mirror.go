//go:build cgo && linux

package acl

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/gotrain/gotrain/npu/acl/cann"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// mirror is what the host knows of a small range of device memory, for operators that take numbers from the host which the contract has on the device. It is
// for the thread only.
//
// It follows copies in the order in which the thread gives them to CANN, not in that in which they are posted: a stream's queue may hold several copies to
// the range with launches between them, and each launch gets the numbers of the copy before it. That is also the order between streams, because the thread
// does not go beyond a Wait before the Record is given. The bytes are taken before CANN gets the copy, so they are those that the copy will read, however late
// it runs: the source must not change until then.
type mirror struct {
	at    cann.Addr
	data  []byte
	known bool // data is what the memory will hold when all that CANN was given is done
	users int
}

// float is element i.
func (m *mirror) float(i int64) float32 {
	return math.Float32frombits(binary.NativeEndian.Uint32(m.data[4*i:]))
}

// overlap is the part of the mirror that n bytes at an address cover.
func (m *mirror) overlap(at cann.Addr, n int64) (from, to int64) {
	end := int64(len(m.data))
	return max(0, min(int64(at)-int64(m.at), end)), max(0, min(int64(at)+n-int64(m.at), end))
}

// mirror finds the mirror of a range, or makes one.
func (d *Device) mirror(at cann.Addr, n int64) *mirror {
	for _, m := range d.mirrors {
		if m.at == at && int64(len(m.data)) == n {
			m.users++
			return m
		}
	}
	m := &mirror{at: at, data: make([]byte, n), users: 1}
	d.mirrors = append(d.mirrors, m)
	return m
}

// unmirror gives a mirror back.
func (d *Device) unmirror(m *mirror) {
	if m.users--; m.users == 0 {
		d.mirrors = slices.DeleteFunc(d.mirrors, func(o *mirror) bool { return o == m })
	}
}

// brought notes that CANN is given a copy of data from the host.
func (d *Device) brought(at cann.Addr, data []byte) {
	for _, m := range d.mirrors {
		from, to := m.overlap(at, int64(len(data)))
		if from < to {
			copy(m.data[from:to], data[int64(m.at)+from-int64(at):])
			m.known = m.known || to-from == int64(len(m.data))
		}
	}
}

// changed notes that memory is written with what the host does not know.
func (d *Device) changed(at cann.Addr, n int64) {
	for _, m := range d.mirrors {
		if from, to := m.overlap(at, n); from < to {
			m.known = false
		}
	}
}

// setting is an argument of a launch that is known to the host when CANN gets it.
type setting struct {
	call, arg int
	from      *mirror
	at        int64
}

// choice leaves a call of a launch out.
type choice struct {
	call int
	from *mirror
	when lower.When
}

// look makes the mirrors of the inputs whose values the launch needs on the host.
func (l *launch) look(b *binding) {
	for _, i := range l.kernel.prog.Host() {
		l.mirrors = append(l.mirrors, l.kernel.dev.mirror(b.in[i], l.kernel.bytes[i]))
	}
}

// mirrorOf is the mirror of an input; nil while a kernel is compiled, when there are no values.
func (l *launch) mirrorOf(in int) *mirror {
	if i := slices.Index(l.kernel.prog.Host(), in); i < len(l.mirrors) {
		return l.mirrors[i]
	}
	return nil
}

// hosted notes what a call, the latest that was added, takes from the host.
func (l *launch) hosted(c lower.Call) {
	at := l.seq.Len() - 1
	for i, a := range c.Args {
		if a.Host != nil {
			l.settings = append(l.settings, setting{at, i, l.mirrorOf(a.Host.In), a.Host.At})
		}
	}
	if c.When != nil {
		l.choices = append(l.choices, choice{at, l.mirrorOf(c.When.Elem.In), *c.When})
	}
}

// unknown is a range whose values the launch needs and the host does not know; nil if there is none.
func (l *launch) unknown() *mirror {
	for _, m := range l.mirrors {
		if !m.known {
			return m
		}
	}
	return nil
}

// fill gives the calls the numbers that the host knows. CANN reads them in first phases, before the next command of any stream.
func (l *launch) fill() {
	for _, s := range l.settings {
		l.seq.SetFloat(s.call, s.arg, float64(s.from.float(s.at)))
	}
	for _, c := range l.choices {
		l.seq.Leave(c.call, !c.when.Holds(c.from.float(c.when.Elem.At)))
	}
}

// readBack asks the device for what a mirror should hold: something else than a copy from the host wrote it, or the copy came before Bind.
func (s *stream) readBack(c *command, m *mirror) (verdict, error) {
	g, err := s.dev.staging()
	if err != nil {
		return finished, err
	}
	at, id, ok, err := g.take(int64(len(m.data)))
	if err != nil {
		return finished, err
	}
	if !ok {
		return waiting, nil
	}
	err = s.dev.lib.Copy(g.base+cann.Addr(at), m.at, int64(len(m.data)), cann.DeviceToHost, s.raw)
	s.gave()
	if err == nil {
		c.mark, err = s.mark()
	}
	if err != nil {
		g.ring.give(id)
		return finished, err
	}
	c.slot, c.slotAt, c.stage = id, at, 1
	return waiting, nil
}

// haveRead ends readBack when the device has answered.
func (s *stream) haveRead(c *command) (verdict, error) {
	over, err := s.passed(&c.mark)
	if !over {
		return waiting, nil
	}
	g := s.dev.thread.staging
	g.ring.give(c.slot)
	c.slot = 0
	if err != nil || s.pending() != nil || s.dev.thread.alive() != nil || s.skip.Get() {
		return finished, err
	}
	if m := c.batch[c.at].(*launch).unknown(); m != nil {
		copy(m.data, g.mem[c.slotAt:])
		m.known = true
	}
	return partly, nil
}
