package hccl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"github.com/gotrain/gotrain/npu"
)

// fakeDevice is a port in plain Go, with memory that the host cannot read.
type fakeDevice struct {
	npu.Device // nil: what collectives do not need
	hub        *fakeHub
	rank       int
	physical   string
	opened     time.Time
	thread     sync.Mutex // held by what runs on the device's thread

	mu      sync.Mutex
	next    uintptr
	blocks  map[uintptr]*fakeBuffer
	streams int
	events  atomic.Int64
}

func newFakeDevice(hub *fakeHub, rank int) *fakeDevice {
	return &fakeDevice{hub: hub, rank: rank, physical: fmt.Sprint(rank), opened: time.Now(), next: 1 << 20, blocks: map[uintptr]*fakeBuffer{}}
}

func (d *fakeDevice) Info() npu.Info {
	return npu.Info{Name: fmt.Sprintf("fake:%d", d.rank), Family: "fake", Separate: true}
}

func (d *fakeDevice) Facts() facts {
	return facts{family: "A2", physical: d.physical, deterministic: true}
}

func (d *fakeDevice) HCCL() (library, error) { return &fakeLibrary{d}, d.hub.injected("load", d.rank) }

func (d *fakeDevice) OnThread(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() {
		d.thread.Lock()
		defer d.thread.Unlock()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *fakeDevice) Last(ctx context.Context, f func() error) error { return d.OnThread(ctx, f) }

func (d *fakeDevice) Hold(_ context.Context, on bool) error {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	if on {
		d.hub.held++
	} else {
		d.hub.held--
	}
	return nil
}

type fakeBuffer struct {
	d    *fakeDevice
	addr uintptr
	mem  []byte
}

func (b *fakeBuffer) Bytes() int64 { return int64(len(b.mem)) }
func (b *fakeBuffer) Host() []byte { return nil }
func (b *fakeBuffer) Free() error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	delete(b.d.blocks, b.addr)
	return nil
}

func (d *fakeDevice) Alloc(n int64) (npu.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := &fakeBuffer{d: d, addr: d.next, mem: make([]byte, n)}
	d.next += uintptr(n+512) &^ 511
	d.blocks[b.addr] = b
	return b, nil
}

func (d *fakeDevice) Address(p npu.Ptr, n int64) (uintptr, error) {
	b, ok := p.Buf.(*fakeBuffer)
	if !ok || b.d != d || p.Off+n > int64(len(b.mem)) {
		return 0, errors.New("memory of another device")
	}
	return b.addr + uintptr(p.Off), nil
}

// at is the memory behind an address.
func (d *fakeDevice) at(a uintptr, n int64) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.blocks {
		if a >= b.addr && a+uintptr(n) <= b.addr+uintptr(len(b.mem)) {
			return b.mem[a-b.addr:][:n]
		}
	}
	return nil
}

// fakeStream runs its work on a goroutine.
type fakeStream struct {
	d    *fakeDevice
	work chan func() error
	done chan struct{}
	over context.Context
	drop context.CancelFunc

	mu  sync.Mutex
	err error
}

func (d *fakeDevice) NewStream(string) (npu.Stream, error) { return d.stream() }
func (d *fakeDevice) Rail(string) (rail, error)            { return d.stream() }

func (d *fakeDevice) stream() (*fakeStream, error) {
	if err := d.hub.injected("stream", d.rank); err != nil {
		return nil, err
	}
	s := &fakeStream{d: d, work: make(chan func() error, 1000), done: make(chan struct{})}
	s.over, s.drop = context.WithCancel(context.Background())
	d.mu.Lock()
	d.streams++
	d.mu.Unlock()
	go func() {
		defer close(s.done)
		for f := range s.work {
			if err := f(); err != nil {
				s.mu.Lock()
				if s.err == nil {
					s.err = err
				}
				s.mu.Unlock()
			}
		}
	}()
	return s, nil
}

func (s *fakeStream) pending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// post enqueues work that a stream with an error skips.
func (s *fakeStream) post(f func() error) error {
	s.work <- func() error {
		if s.pending() != nil {
			return nil
		}
		return f()
	}
	return nil
}

func (s *fakeStream) Name() string              { return "fake" }
func (s *fakeStream) Run([]npu.Launch) error    { return errors.New("no kernels") }
func (s *fakeStream) Do(f func() error) error   { return s.post(f) }
func (s *fakeStream) Skip(bool)                 {}
func (s *fakeStream) Profile(bool) []npu.Sample { return nil }
func (s *fakeStream) Abort(_ context.Context, cause error) error {
	s.drop()
	if err := s.d.hub.injected("abort", s.d.rank); err != nil {
		return err
	}
	return s.post(func() error { return cause })
}
func (s *fakeStream) at(p npu.Ptr, n int64) []byte { return p.Buf.(*fakeBuffer).mem[p.Off:][:n] }

func (s *fakeStream) CopyIn(dst npu.Ptr, src []byte) error {
	return s.post(func() error { copy(s.at(dst, int64(len(src))), src); return nil })
}

func (s *fakeStream) CopyOut(dst []byte, src npu.Ptr) error {
	return s.post(func() error { copy(dst, s.at(src, int64(len(dst)))); return nil })
}

func (s *fakeStream) Copy(dst, src npu.Ptr, n int64) error {
	return s.post(func() error { copy(s.at(dst, n), s.at(src, n)); return nil })
}

// Raw runs f where the stream gets to it: the fake collectives block there.
func (s *fakeStream) Raw(f func(stream uintptr) error) error {
	return s.post(func() error {
		s.d.hub.mu.Lock()
		id := uintptr(len(s.d.hub.streams) + 1)
		s.d.hub.streams[id] = s
		s.d.hub.mu.Unlock()
		return f(id)
	})
}

func (s *fakeStream) Sync(ctx context.Context) error {
	done := make(chan error, 1)
	s.work <- func() error {
		s.mu.Lock()
		done <- s.err
		s.err = nil
		s.mu.Unlock()
		return nil
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *fakeStream) Close() error {
	s.drop()
	close(s.work)
	<-s.done
	s.d.mu.Lock()
	s.d.streams--
	s.d.mu.Unlock()
	return nil
}

// fakeEvent is an event: its latest record.
type fakeEvent struct {
	d      *fakeDevice
	mu     sync.Mutex
	record *fakeRecord
}

type fakeRecord struct {
	done chan struct{}
	err  error
	at   time.Duration
}

func (d *fakeDevice) NewEvent() (npu.Event, error) {
	d.events.Add(1)
	r := &fakeRecord{done: make(chan struct{})}
	close(r.done)
	return &fakeEvent{d: d, record: r}, nil
}

func (e *fakeEvent) latest() *fakeRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.record
}

func (s *fakeStream) Record(ev npu.Event) error {
	e, r := ev.(*fakeEvent), &fakeRecord{done: make(chan struct{})}
	e.mu.Lock()
	e.record = r
	e.mu.Unlock()
	s.work <- func() error {
		r.err, r.at = s.pending(), time.Since(s.d.opened)
		close(r.done)
		return nil
	}
	return nil
}

func (s *fakeStream) Wait(ev npu.Event) error {
	r := ev.(*fakeEvent).latest()
	return s.post(func() error {
		select {
		case <-r.done:
			return r.err
		case <-s.over.Done():
			return errors.New("the stream was aborted")
		}
	})
}

func (e *fakeEvent) Done() bool {
	select {
	case <-e.latest().done:
		return true
	default:
		return false
	}
}

func (e *fakeEvent) Sync(ctx context.Context) error {
	r := e.latest()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *fakeEvent) At() time.Duration { return e.latest().at }
func (e *fakeEvent) Close() error      { e.d.events.Add(-1); return nil }

// fakeHub is where the fake HCCL of all ranks meets.
type fakeHub struct {
	mu      sync.Mutex
	streams map[uintptr]*fakeStream
	meets   map[string]*fakeMeet
	rounds  map[uintptr]int // by group: collectives so far
	groups  int
	held    int // devices that keep theirs
	configs [][]byte
	inject  map[string]error // "call rank" or "call"; the call fails with it
	hang    string           // a call that never ends
}

func newFakeHub() *fakeHub {
	return &fakeHub{streams: map[uintptr]*fakeStream{}, meets: map[string]*fakeMeet{}, rounds: map[uintptr]int{}, inject: map[string]error{}}
}

func (h *fakeHub) injected(call string, rank int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.inject[fmt.Sprintf("%s %d", call, rank)]; err != nil {
		return err
	}
	return h.inject[call]
}

// fakeMeet is one rendezvous: the last to come computes.
type fakeMeet struct {
	ins  [][]byte
	n    int
	done chan struct{}
}

// meet brings data of all ranks together.
func (h *fakeHub) meet(key string, rank, size int, in []byte, over <-chan struct{}) ([][]byte, error) {
	h.mu.Lock()
	m := h.meets[key]
	if m == nil {
		m = &fakeMeet{ins: make([][]byte, size), done: make(chan struct{})}
		h.meets[key] = m
	}
	m.ins[rank] = bytes.Clone(in)
	if m.n++; m.n == size {
		close(m.done)
	}
	hang := key == h.hang
	h.mu.Unlock()
	if hang {
		<-over
		return nil, errors.New("aborted")
	}
	select {
	case <-m.done:
		return m.ins, nil
	case <-over:
		return nil, errors.New("aborted")
	}
}

// fakeLibrary is HCCL.
type fakeLibrary struct{ d *fakeDevice }

// A group is its number of ranks and the rank, packed, and a number that counts collectives on this rank.
func (l *fakeLibrary) RootInfo() ([]byte, error) {
	return make([]byte, rootInfoSize), l.d.hub.injected("RootInfo", l.d.rank)
}

func (l *fakeLibrary) Init(ranks int, root []byte, rank int, config []byte) (uintptr, error) {
	h := l.d.hub
	if err := h.injected("Init", rank); err != nil {
		return 0, err
	}
	if len(root) != rootInfoSize || len(config) != 300 {
		return 0, fmt.Errorf("root of %d bytes, configuration of %d", len(root), len(config))
	}
	late, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if _, err := h.meet("init", rank, ranks, nil, late.Done()); err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.groups++
	h.configs = append(h.configs, config)
	return uintptr(ranks<<8 | rank + 1), nil
}

func (l *fakeLibrary) Destroy(uintptr) error {
	if err := l.d.hub.injected("Destroy", l.d.rank); err != nil {
		return err
	}
	l.d.hub.mu.Lock()
	defer l.d.hub.mu.Unlock()
	l.d.hub.groups--
	return nil
}

func (l *fakeLibrary) AsyncError(uintptr) error { return nil }

var numbers = func() map[int32]npu.DType {
	m := map[int32]npu.DType{}
	for dt, t := range types {
		m[t.number] = dt
	}
	return m
}()

// collective meets the others and computes with what they bring.
func (l *fakeLibrary) collective(name string, in uintptr, inElems int64, t int32, group, stream uintptr, then func(size, rank int, ins [][]byte)) error {
	h, dt := l.d.hub, numbers[t]
	size, rank := int(group>>8), int(group&255)-1
	if err := h.injected(name, rank); err != nil {
		return err
	}
	h.mu.Lock()
	s := h.streams[stream]
	key := uintptr(rank)
	h.rounds[key]++
	n := h.rounds[key]
	h.mu.Unlock()
	ins, err := h.meet(fmt.Sprintf("collective %d", n), rank, size, l.d.at(in, inElems*int64(dt.Size())), s.over.Done())
	if err == nil {
		then(size, rank, ins)
	}
	return err
}

// fold combines in rank order, with one rounding at the end.
func fold(t, op int32, ins [][]byte) []byte {
	dt, o := numbers[t], map[int32]comm.Op{0: comm.Sum, 2: comm.Max, 3: comm.Min}[op]
	sum := make([]byte, len(ins[0]))
	if len(sum) == 0 {
		return sum
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	src := make([]unsafe.Pointer, len(ins))
	for r := range ins {
		pin.Pin(&ins[r][0])
		src[r] = unsafe.Pointer(&ins[r][0])
	}
	reduce.Many(o, dt, len(sum)/dt.Size(), unsafe.Pointer(&sum[0]), nil, src)
	return sum
}

func (l *fakeLibrary) AllReduce(send, recv uintptr, n int64, t, op int32, group, stream uintptr) error {
	return l.collective("AllReduce", send, n, t, group, stream, func(_, _ int, ins [][]byte) {
		sum := fold(t, op, ins)
		copy(l.d.at(recv, int64(len(sum))), sum)
	})
}

func (l *fakeLibrary) Reduce(send, recv uintptr, n int64, t, op int32, root int, group, stream uintptr) error {
	return l.collective("Reduce", send, n, t, group, stream, func(_, rank int, ins [][]byte) {
		if rank == root {
			sum := fold(t, op, ins)
			copy(l.d.at(recv, int64(len(sum))), sum)
		}
	})
}

func (l *fakeLibrary) ReduceScatter(send, recv uintptr, n int64, t, op int32, group, stream uintptr) error {
	size := int64(group >> 8)
	return l.collective("ReduceScatter", send, n*size, t, group, stream, func(_, rank int, ins [][]byte) {
		sum := fold(t, op, ins)
		part := int64(len(sum)) / size
		copy(l.d.at(recv, part), sum[int64(rank)*part:])
	})
}

func (l *fakeLibrary) AllGather(send, recv uintptr, n int64, t int32, group, stream uintptr) error {
	return l.collective("AllGather", send, n, t, group, stream, func(_, _ int, ins [][]byte) {
		all := bytes.Join(ins, nil)
		copy(l.d.at(recv, int64(len(all))), all)
	})
}

func (l *fakeLibrary) Broadcast(buf uintptr, n int64, t int32, root int, group, stream uintptr) error {
	return l.collective("Broadcast", buf, n, t, group, stream, func(_, _ int, ins [][]byte) {
		copy(l.d.at(buf, int64(len(ins[root]))), ins[root])
	})
}

func (l *fakeLibrary) AllToAll(send, recv uintptr, n int64, t int32, group, stream uintptr) error {
	size := int64(group >> 8)
	return l.collective("AllToAll", send, n*size, t, group, stream, func(_, rank int, ins [][]byte) {
		for r, in := range ins {
			part := len(in) / len(ins)
			copy(l.d.at(recv+uintptr(r*part), int64(part)), in[rank*part:][:part])
		}
	})
}
