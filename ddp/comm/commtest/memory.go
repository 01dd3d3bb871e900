package commtest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// memories are the streams through which the suite fills and reads device memory, one for each rank.
type memories struct {
	mu      sync.Mutex
	streams map[comm.Communicator]npu.Stream
}

// stream returns the stream of a rank.
func (tr Transport) stream(c comm.Communicator) (npu.Stream, error) {
	tr.mem.mu.Lock()
	defer tr.mem.mu.Unlock()
	if s := tr.mem.streams[c]; s != nil {
		return s, nil
	}
	s, err := tr.Device(c).NewStream(fmt.Sprintf("rank %d", c.Rank()))
	if err == nil {
		tr.mem.streams[c] = s
	}
	return s, err
}

// release closes the streams of a group.
func (tr Transport) release(g []comm.Communicator) error {
	if tr.mem == nil {
		return nil
	}
	tr.mem.mu.Lock()
	defer tr.mem.mu.Unlock()
	var first error
	for _, c := range g {
		if s := tr.mem.streams[c]; s != nil {
			if err := s.Close(); err != nil && first == nil {
				first = err
			}
			delete(tr.mem.streams, c)
		}
	}
	return first
}

// memory gives n elements, from Alloc of the communicator or from elsewhere: the heap, or the device.
func (tr Transport) memory(c comm.Communicator, t npu.DType, n int64, shared bool) (comm.Mem, func(), error) {
	bytes := n * int64(t.Size())
	if !shared && tr.Device == nil {
		return comm.Host(make([]byte, bytes), t), func() {}, nil
	}
	alloc := c.Alloc
	if !shared {
		alloc = tr.Device(c).Alloc
	}
	b, err := alloc(bytes)
	if err != nil {
		return comm.Mem{}, nil, err
	}
	return comm.Mem{Ptr: npu.Ptr{Buf: b}, Elems: n, DType: t}, func() { b.Free() }, nil
}

// some gives n zeros that live until the end of the test.
func (tr Transport) some(t *testing.T, c comm.Communicator, dt npu.DType, n int) comm.Mem {
	m, free, err := tr.memory(c, dt, int64(n), false)
	if err != nil {
		panic(fmt.Sprintf("commtest: memory of rank %d: %v", c.Rank(), err)) // t.Fatal is not for goroutines of the test
	}
	t.Cleanup(free)
	return m
}

// put fills a span.
func (tr Transport) put(c comm.Communicator, dst comm.Mem, src []byte) error {
	if tr.Device == nil {
		copy(dst.Host(), src)
		return nil
	}
	return tr.carry(c, int64(len(src)), func(s npu.Stream, stage []byte) error {
		copy(stage, src)
		return s.CopyIn(dst.Ptr, stage)
	}, nil)
}

// get reads a span.
func (tr Transport) get(c comm.Communicator, src comm.Mem) (out []byte, err error) {
	if tr.Device == nil {
		return bytes.Clone(src.Host()), nil
	}
	err = tr.carry(c, src.Bytes(), func(s npu.Stream, stage []byte) error { return s.CopyOut(stage, src.Ptr) },
		func(stage []byte) { out = bytes.Clone(stage) })
	return out, err
}

// carry enqueues a copy between the device and page-locked memory of n bytes, and waits for it.
func (tr Transport) carry(c comm.Communicator, n int64, enqueue func(npu.Stream, []byte) error, after func(stage []byte)) error {
	if n == 0 {
		return nil
	}
	s, err := tr.stream(c)
	if err != nil {
		return err
	}
	stage, err := npu.AllocHost(tr.Device(c), n)
	if err != nil {
		return err
	}
	defer stage.Free()
	if err := enqueue(s, stage.Host()); err != nil {
		return err
	}
	if err := s.Sync(context.Background()); err != nil {
		return err
	}
	if after != nil {
		after(stage.Host())
	}
	return nil
}

// of returns memory with the values v.
func of[T comm.Number](tr Transport, t *testing.T, c comm.Communicator, v ...T) comm.Mem {
	m := tr.some(t, c, comm.DTypeOf[T](), len(v))
	if err := tr.put(c, m, comm.HostOf(v).Host()); err != nil {
		panic(fmt.Sprintf("commtest: filling memory of rank %d: %v", c.Rank(), err))
	}
	return m
}

// values returns the elements of a span.
func values[T comm.Number](tr Transport, c comm.Communicator, m comm.Mem) ([]T, error) {
	b, err := tr.get(c, m)
	if err != nil {
		return nil, err
	}
	return comm.View[T](comm.Host(b, m.DType)), nil
}
