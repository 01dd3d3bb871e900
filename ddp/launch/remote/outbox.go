package remote

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	window     = 1 << 20  // bytes of output that may be on their way
	keep       = 16 << 20 // bytes of output that wait for a slow reader
	patience   = time.Second
	silenceMax = 20 * time.Second
	frozen     = 20 * beat // of an agent: more than ranks wait for a heartbeat by default, whose word says more, and than a machine that is being moved stands
)

// outbox sends frames over the channel. Control frames never wait for output: output is sent as far as the other side gives credit, waits in a bounded
// queue, and is dropped, and counted, when nothing moves although the queue is full. No caller is blocked for longer than a second without progress.
type outbox struct {
	w io.Writer

	mu      sync.Mutex
	more    sync.Cond // something to send, or credit
	control []frame
	output  []frame
	queued  int // bytes of output
	credit  int
	moved   chan struct{}
	stuck   bool
	lost    int
	err     error
	closed  bool
	writing bool
	done    chan struct{}
}

func newOutbox(w io.Writer) *outbox {
	o := &outbox{w: w, credit: window, moved: make(chan struct{}), done: make(chan struct{})}
	o.more.L = &o.mu
	go o.run()
	return o
}

// send queues a control frame. It never waits.
func (o *outbox) send(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && !o.closed {
		o.control = append(o.control, f)
		o.more.Signal()
	}
}

// put queues output, in order.
func (o *outbox) put(f frame, lines int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.queued > 0 && o.queued+len(f.payload) > keep && !o.stuck {
		o.stuck = !o.await(o.moved)
	}
	if o.err != nil || o.closed {
		return
	}
	if o.queued > 0 && o.queued+len(f.payload) > keep && f.kind != kindFinished {
		o.lost += lines
		return
	}
	if o.lost > 0 {
		o.queue(frame{kindSay, fmt.Appendf(nil, "%d lines were dropped: they were not read", o.lost)})
		o.lost = 0
	}
	o.queue(f)
}

// must queues a frame that may not be dropped, and waits for room until the channel fails.
func (o *outbox) must(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.queued > 4*maxOutput {
		o.await(o.moved)
	}
	if o.err == nil {
		o.queue(f)
	}
}

func (o *outbox) queue(f frame) {
	o.output = append(o.output, f)
	o.queued += len(f.payload)
	o.more.Signal()
}

// idle reports whether all output is on its way.
func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.output) == 0
}

// grant adds credit.
func (o *outbox) grant(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.credit = min(window, o.credit+n)
	o.more.Signal()
}

// await waits up to patience for a channel, without holding the lock.
func (o *outbox) await(c <-chan struct{}) bool {
	o.mu.Unlock()
	defer o.mu.Lock()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// next waits for the frame to send next. A frame of output may exceed the credit, so that a large one is sent at all.
func (o *outbox) next() (f frame, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = false
	defer func() { o.writing = ok }()
	for {
		switch {
		case o.err != nil:
			return f, false
		case len(o.control) > 0:
			f, o.control = o.control[0], o.control[1:]
			return f, true
		case len(o.output) > 0 && o.credit > 0:
			f, o.output = o.output[0], o.output[1:]
			o.queued -= len(f.payload)
			o.credit -= len(f.payload)
			o.stuck = false
			close(o.moved)
			o.moved = make(chan struct{})
			return f, true
		case o.closed:
			return f, false
		}
		o.more.Wait()
	}
}

func (o *outbox) run() {
	defer close(o.done)
	var b []byte
	for {
		f, ok := o.next()
		if !ok {
			return
		}
		b = f.append(b[:0])
		if _, err := o.w.Write(b); err != nil {
			o.fail(err)
			return
		}
		if cap(b) > maxFrame/4 {
			b = nil
		}
	}
}

// flush waits until control frames are written, but not for long.
func (o *outbox) flush() {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		o.mu.Lock()
		done := o.err != nil || len(o.control) == 0 && !o.writing
		o.mu.Unlock()
		if done {
			return
		}
	}
}

// fail drops everything from now on.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		close(o.moved)
		o.moved = make(chan struct{})
	}
	o.control, o.output, o.queued = nil, nil, 0
	o.more.Broadcast()
}

// close sends what there is, as far as credit goes, and ends.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.more.Broadcast()
	o.mu.Unlock()
}
