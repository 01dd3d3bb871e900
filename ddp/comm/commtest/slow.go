package commtest

import (
	"context"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Slow makes a communicator whose all-reduces take at least bytes ÷ rate, one after another, as on a wire of that many bytes a second. All other calls
// are passed on.
func Slow(c comm.Communicator, rate float64) comm.Communicator {
	return &slow{Communicator: c, rate: rate}
}

type slow struct {
	comm.Communicator
	rate float64
	mu   sync.Mutex
	free time.Time // when the wire becomes free
}

func (s *slow) AllReduce(ctx context.Context, m comm.Mem, op comm.Op) (comm.Handle, error) {
	h, err := s.Communicator.AllReduce(ctx, m, op)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	begin := time.Now()
	if s.free.After(begin) {
		begin = s.free
	}
	s.free = begin.Add(time.Duration(float64(m.Bytes()) / s.rate * 1e9))
	k := &slowHandle{inner: h, end: s.free, done: make(chan struct{})}
	s.mu.Unlock()
	go k.run()
	return k, nil
}

type slowHandle struct {
	inner comm.Handle
	end   time.Time
	done  chan struct{}
}

func (h *slowHandle) run() {
	defer close(h.done)
	<-h.inner.Done()
	if h.inner.Wait(context.Background()) == nil {
		time.Sleep(time.Until(h.end))
	}
}

func (h *slowHandle) Wait(ctx context.Context) error {
	if err := h.inner.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *slowHandle) Done() <-chan struct{}                            { return h.done }
func (h *slowHandle) Took() (transfer, wait time.Duration, apart bool) { return h.inner.Took() }
