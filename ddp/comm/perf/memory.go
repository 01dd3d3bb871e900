package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// guard is how many bytes behind a result are watched.
const guard = 64

// memory is what a collective works on. in and out are the same where the call has one span.
type memory struct {
	out, in comm.Mem
	behind  []byte // of out
	bufs    []npu.Buffer
}

// reserve makes the memory of a call.
func reserve(c comm.Communicator, call comm.Call, heap bool) (_ *memory, err error) {
	m := &memory{}
	defer func() {
		if err != nil {
			m.free()
		}
	}()
	w := int64(c.Size())
	out, in := call.Elems, int64(0)
	switch call.Kind {
	case comm.AllGather:
		in = call.Elems / w
	case comm.AllToAll:
		in = call.Elems
	case comm.ReduceScatter:
		out, in = call.Elems/w, call.Elems
	}
	if m.out, m.behind, err = m.span(c, call.DType, out, heap); err != nil {
		return nil, err
	}
	if m.in = m.out; in > 0 {
		m.in, _, err = m.span(c, call.DType, in, heap)
	}
	return m, err
}

// span makes n elements with a guard behind them.
func (m *memory) span(c comm.Communicator, t npu.DType, n int64, heap bool) (comm.Mem, []byte, error) {
	bytes := n * int64(t.Size())
	var buf npu.Buffer = comm.NewHostBuffer(nil)
	if heap {
		buf = comm.NewHostBuffer(make([]byte, bytes+guard))
	} else {
		b, err := c.Alloc(bytes + guard)
		if err != nil {
			return comm.Mem{}, nil, fmt.Errorf("memory for %d bytes: %w", bytes, err)
		}
		buf = b
		m.bufs = append(m.bufs, b)
	}
	if buf.Host() == nil {
		return comm.Mem{}, nil, errors.New("the host cannot access the memory of this transport")
	}
	return comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: n, DType: t}, buf.Host()[bytes:], nil
}

func (m *memory) free() error {
	var errs []error
	for _, b := range m.bufs {
		errs = append(errs, b.Free())
	}
	m.bufs = nil
	return errors.Join(errs...)
}

// copying measures how many bytes a second each rank copies while all do, from one half of memory of the size of the largest call to the other; the slowest
// rank counts.
func copying(ctx context.Context, c comm.Communicator, cfg *Config, bytes int64) (float64, error) {
	bytes = max(bytes, 64<<10)
	m := &memory{}
	src, _, err := m.span(c, npu.U8, bytes, cfg.Heap)
	if err != nil {
		return 0, err
	}
	dst, _, err := m.span(c, npu.U8, bytes, cfg.Heap)
	if err != nil {
		return 0, errors.Join(err, m.free())
	}
	to, from := dst.Host(), src.Host()
	for i := range from {
		from[i] = byte(i)
	}
	copy(to, from)
	v := []float64{0}
	for range 3 {
		if err := comm.Wait(ctx)(c.Barrier(ctx)); err != nil {
			return 0, errors.Join(err, m.free())
		}
		n, begin := 0, time.Now()
		for n == 0 || time.Since(begin) < 5*time.Millisecond {
			copy(to, from)
			n++
		}
		v[0] = max(v[0], float64(bytes)*float64(n)/time.Since(begin).Seconds())
	}
	err = comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(v), comm.Min))
	return v[0], errors.Join(err, m.free())
}
