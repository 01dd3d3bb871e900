package ddp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// stubborn is a communicator of a transport that does not let go of memory: from the time that it is turned on, its calls fail.
type stubborn struct {
	comm.Communicator
	on     bool
	handle func() comm.Handle
	mem    *watched
}

// watched is memory that notes what happens to it.
type watched struct {
	npu.Buffer
	freed, kept bool
}

func (w *watched) Free() error { w.freed = true; return nil }
func (w *watched) Keep()       { w.kept = true }

func (s *stubborn) Alloc(bytes int64) (npu.Buffer, error) {
	b, err := s.Communicator.Alloc(bytes)
	s.mem = &watched{Buffer: b}
	return s.mem, err
}

func (s *stubborn) AllReduce(ctx context.Context, m comm.Mem, op comm.Op) (comm.Handle, error) {
	if s.on && m.DType == npu.F32 {
		return s.handle(), nil
	}
	return s.Communicator.AllReduce(ctx, m, op)
}

// broken is a handle of a call that failed; if done is nil, it never ends.
type brokenHandle struct {
	err  error
	done chan struct{}
}

func (h brokenHandle) Wait(context.Context) error                 { return h.err }
func (h brokenHandle) Done() <-chan struct{}                      { return h.done }
func (h brokenHandle) Took() (time.Duration, time.Duration, bool) { return 0, 0, true }

func ended() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// failing runs a step on a stubborn transport and returns the engine and what it watched.
func failing(t *testing.T, h brokenHandle) (*ddp.Engine, *watched) {
	t.Helper()
	g := group(t, 2)
	var e *ddp.Engine
	var mem *watched
	ranks(t, g, func(c comm.Communicator) error {
		s := &stubborn{Communicator: c, handle: func() comm.Handle { return h }}
		mine, err := ddp.New(context.Background(), ddp.Config{Comm: s, Params: params(100)})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return mine.Close()
		}
		e, mem, s.on = mine, s.mem, true
		if err := e.Begin(0, true); err != nil {
			return err
		}
		if err := e.Ready(0); err != nil {
			return err
		}
		if _, err := e.Wait(context.Background()); err == nil || !errors.Is(err, h.err) {
			t.Errorf("the step ends with %v, want %v", err, h.err)
		}
		return nil
	})
	if e == nil {
		t.FailNow()
	}
	return e, mem
}

// Memory that a transport may still write is kept, not freed, and Close says so.
func TestMemoryInUseIsNotFreed(t *testing.T) {
	lost := errors.New("device lost")
	e, mem := failing(t, brokenHandle{comm.InUse(lost), ended()})
	err := e.Close()
	if err == nil || !strings.Contains(err.Error(), "did not let go of gradient memory") || mem.freed || !mem.kept {
		t.Errorf("%v; freed %v, kept %v", err, mem.freed, mem.kept)
	}
	if err := e.Close(); err != nil { // idempotent
		t.Error(err)
	}
	e, mem = failing(t, brokenHandle{lost, ended()})
	if err := e.Close(); err != nil || !mem.freed || mem.kept {
		t.Errorf("after an ordinary failure: %v; freed %v, kept %v", err, mem.freed, mem.kept)
	}
}

// A call that never ends does not hold up Abandon, and its memory stays.
func TestAbandonDoesNotWaitForTheTransport(t *testing.T) {
	e, mem := failing(t, brokenHandle{errors.New("device hangs"), nil})
	done := make(chan error, 1)
	go func() { done <- e.Abandon() }()
	select {
	case err := <-done:
		if err != nil || mem.freed || !mem.kept {
			t.Errorf("%v; freed %v, kept %v", err, mem.freed, mem.kept)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Abandon waits for a call that never ends")
	}
	if err := e.Close(); err != nil || mem.freed {
		t.Errorf("Close after Abandon: %v; freed %v", err, mem.freed)
	}
}
