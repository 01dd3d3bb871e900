//go:build cgo && linux

package acl

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// staging is page-locked memory through which copies from and to Go's memory go. CANN keeps a pointer to host memory after the call that enqueues a copy has
// returned, and cgo forbids that for Go's memory.
type staging struct {
	base cann.Addr
	mem  []byte
	ring slots
	used []staged // copies to the device that may still read their slots, in order
}

type staged struct {
	slot int64
	mark cann.Event
	s    *stream
}

const (
	stagingBytes = 64 << 20
	stagingPiece = 8 << 20 // one copy takes at most so much at once, so that the thread is not away for long
)

// staging returns the ring, which it makes at the first use.
func (d *Device) staging() (*staging, error) {
	t := d.thread
	if t.staging != nil {
		return t.staging, nil
	}
	p, err := d.lib.MallocHost(stagingBytes)
	if err != nil {
		return nil, fmt.Errorf("page-locked memory for copies: %w", err)
	}
	t.staging = &staging{base: p, mem: cann.Host(p, stagingBytes), ring: slots{size: stagingBytes}}
	return t.staging, nil
}

// take finds a slot. It first gives back those whose copies are over.
func (g *staging) take(n int64) (at, id int64, ok bool, err error) {
	done := 0
	for done < len(g.used) {
		u := &g.used[done]
		over, err := u.s.passed(&u.mark)
		if err != nil {
			return 0, 0, false, err
		}
		if !over {
			break
		}
		g.ring.give(u.slot)
		done++
	}
	g.used = append(g.used[:0], g.used[done:]...)
	at, id, ok = g.ring.take(n)
	return at, id, ok, nil
}

// free gives the memory back, when no stream uses it any more.
func (d *Device) freeStaging() error {
	t := d.thread
	if t.staging == nil {
		return nil
	}
	for _, u := range t.staging.used {
		t.retire(u.mark)
	}
	p := t.staging.base
	t.staging = nil
	return d.lib.FreeHost(p)
}

// stepIn copies to the device.
func (s *stream) stepIn(c *command) (verdict, error) {
	if c.locked {
		s.dev.brought(c.to, c.host)
		err := s.dev.lib.Copy(c.to, cann.HostAddr(c.host), int64(len(c.host)), cann.HostToDevice, s.raw)
		s.gave()
		return finished, err
	}
	g, err := s.dev.staging()
	if err != nil {
		return finished, err
	}
	n := min(int64(len(c.host))-c.at, stagingPiece)
	at, id, ok, err := g.take(n)
	if err != nil {
		return finished, err
	}
	if !ok {
		return waiting, nil
	}
	copy(g.mem[at:at+n], c.host[c.at:])
	s.dev.brought(c.to+cann.Addr(c.at), g.mem[at:at+n])
	err = s.dev.lib.Copy(c.to+cann.Addr(c.at), g.base+cann.Addr(at), n, cann.HostToDevice, s.raw)
	s.gave()
	var m cann.Event
	if err == nil {
		m, err = s.mark()
	}
	if err != nil {
		g.ring.give(id)
		return finished, err
	}
	g.used = append(g.used, staged{id, m, s})
	c.at += n
	if c.at == int64(len(c.host)) {
		return finished, nil
	}
	return partly, nil
}

// stepOut copies from the device. What is enqueued behind a copy to Go's memory waits for it, so that an event behind it means what the contract says.
func (s *stream) stepOut(c *command) (verdict, error) {
	if c.locked {
		err := s.dev.lib.Copy(cann.HostAddr(c.host), c.from, int64(len(c.host)), cann.DeviceToHost, s.raw)
		s.gave()
		return finished, err
	}
	g, err := s.dev.staging()
	if err != nil {
		return finished, err
	}
	n := min(int64(len(c.host))-c.at, stagingPiece)
	if c.stage == 0 {
		at, id, ok, err := g.take(n)
		if err != nil {
			return finished, err
		}
		if !ok {
			return waiting, nil
		}
		c.slot, c.slotAt = id, at
		err = s.dev.lib.Copy(g.base+cann.Addr(at), c.from+cann.Addr(c.at), n, cann.DeviceToHost, s.raw)
		s.gave()
		if err == nil {
			c.mark, err = s.mark()
		}
		if err != nil {
			g.ring.give(id)
			return finished, err
		}
		c.stage = 1
		return waiting, nil
	}
	over, err := s.passed(&c.mark)
	if !over {
		return waiting, nil
	}
	defer g.ring.give(c.slot)
	if err != nil || s.pending() != nil || s.dev.thread.alive() != nil { // the bytes may not be there
		return finished, err
	}
	copy(c.host[c.at:c.at+n], g.mem[c.slotAt:])
	c.at, c.stage = c.at+n, 0
	if c.at == int64(len(c.host)) {
		return finished, nil
	}
	return partly, nil
}

// pageLocked knows the page-locked memory that was handed out.
type pageLocked struct {
	mu   sync.RWMutex
	list []area // by address
}

type area struct{ at, end uintptr }

func (p *pageLocked) add(b []byte) {
	a := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	p.mu.Lock()
	defer p.mu.Unlock()
	i, _ := p.find(a)
	p.list = slices.Insert(p.list, i, area{a, a + uintptr(len(b))})
}

func (p *pageLocked) remove(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.find(uintptr(unsafe.Pointer(unsafe.SliceData(b)))); ok {
		p.list = slices.Delete(p.list, i, i+1)
	}
}

func (p *pageLocked) find(a uintptr) (int, bool) {
	return slices.BinarySearchFunc(p.list, a, func(x area, at uintptr) int { return cmp.Compare(x.at, at) })
}

// has reports whether all of b is page-locked.
func (p *pageLocked) has(b []byte) bool {
	a := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	p.mu.RLock()
	defer p.mu.RUnlock()
	i, ok := p.find(a)
	if !ok {
		i--
	}
	return i >= 0 && a+uintptr(len(b)) <= p.list[i].end
}
