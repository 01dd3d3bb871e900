//go:build cgo && linux

package acl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// thread is the one OS thread that calls CANN for a device. It executes functions that goroutines hand to it, gives the commands of all streams to CANN, and
// asks CANN whether events have been reached that somebody waits for. It never waits inside of CANN for longer than a millisecond or so, but for what CANN
// only offers that way (opening the device, meeting other ranks).
type thread struct {
	name    string // of the device, for messages
	lib     *cann.Lib
	runner  *cann.Runner
	opened  time.Time
	base    uint64      // the device's time at opened, in microseconds
	staging *staging    // made when it is first needed
	debug   bool        // wait after each operator
	phases  [2]uint64   // calls of first and second phases; atomic
	recent  recent      // the latest launches, for errors that show late
	pages   *pageLocked // page-locked memory that was handed out

	posts    atomic.Uint64 // what was posted, ever
	sleeping atomic.Bool
	wakeMu   sync.Mutex // held while another goroutine writes to wake, which must not be closed then: the number may soon be another file's
	wake     int        // eventfd; -1 once closed

	mu    sync.Mutex
	calls []*call
	dead  error // the device cannot be used any more; the first cause
	stop  bool
	runs  *call         // the one that runs
	left  *call         // the one that runs although its caller gave up
	jam   chan struct{} // closed when that has taken too long
	stuck bool          // cleaning up has waited in vain for the thread, which is inside of CANN

	patience time.Duration // of those who clean up
	leftTime time.Duration // for a call whose caller gave up

	ended chan struct{}

	poolMu sync.Mutex
	pool   []cann.Event // idle events, the longest idle first
	events []cann.Event // all that exist

	// For the thread only.
	streams []*stream
	waits   []wait
	since   time.Time // when waiting began without progress; zero: it did not
	probed  time.Time
}

// call is a function that a goroutine wants to be run on the thread.
type call struct {
	fn   func() error
	done chan error
	last bool // it runs although the device is dead: it cleans up
}

// wait is something that somebody waits for: poll reports whether it is over, and the error that it met. cut is called instead when the device dies.
type wait struct {
	poll func() (over bool, err error)
	cut  func(error)
}

func newThread(name string) (*thread, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	t := &thread{name: name, wake: fd, ended: make(chan struct{}), opened: time.Now(), pages: &pageLocked{}, patience: patience,
		jam: make(chan struct{}), leftTime: leftTime}
	return t, nil
}

// run is the thread's life.
func (t *thread) run(cpus []int) {
	runtime.LockOSThread() // never unlocked: the thread has a context of CANN, and ends with the goroutine
	defer close(t.ended)
	if len(cpus) > 0 {
		var set unix.CPUSet
		for _, c := range cpus {
			set.Set(c)
		}
		_ = unix.SchedSetaffinity(0, &set) // best effort: it only runs slower elsewhere
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) // naps of microseconds, not of 50 more; best effort
	var buf [8]byte
	for {
		seen := t.posts.Load()
		busy, polls := t.runCalls(), false
		for _, s := range t.streams {
			b, p := s.advance()
			busy, polls = busy || b, polls || p
		}
		busy = t.poll() || busy
		t.bury()
		if t.finished() {
			t.wakeMu.Lock()
			unix.Close(t.wake)
			t.wake = -1
			t.wakeMu.Unlock()
			return
		}
		if busy {
			t.since = time.Time{}
			continue
		}
		t.sleep(seen, polls || len(t.waits) > 0, buf[:])
	}
}

func (t *thread) finished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stop && len(t.calls) == 0
}

// notify wakes the thread for something new.
func (t *thread) notify() {
	t.posts.Add(1)
	if t.sleeping.Load() {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		t.wakeMu.Lock()
		defer t.wakeMu.Unlock()
		if t.wake >= 0 {
			_, _ = unix.Write(t.wake, one[:]) // a full counter has woken it already
		}
	}
}

// sleep waits for something new; where something is to be asked for, for a time that grows with the time already waited.
func (t *thread) sleep(seen uint64, polls bool, buf []byte) {
	var limit *unix.Timespec
	if polls {
		now := time.Now()
		if t.since.IsZero() {
			t.since, t.probed = now, now
		}
		waited := now.Sub(t.since)
		if now.Sub(t.probed) > 50*time.Millisecond {
			t.probed = now
			t.probe()
		}
		nap := min(max(waited/8, 5*time.Microsecond), time.Millisecond)
		ts := unix.NsecToTimespec(int64(nap))
		limit = &ts
	}
	t.sleeping.Store(true)
	if t.posts.Load() == seen {
		fds := [1]unix.PollFd{{Fd: int32(t.wake), Events: unix.POLLIN}}
		_, _ = unix.Ppoll(fds[:], limit, nil) // an interrupted wait is only shorter
	}
	t.sleeping.Store(false)
	_, _ = unix.Read(t.wake, buf) // resets the counter
}

// runCalls runs the functions that were handed over.
func (t *thread) runCalls() bool {
	busy := false
	for {
		t.mu.Lock()
		if len(t.calls) == 0 {
			t.mu.Unlock()
			return busy
		}
		c := t.calls[0]
		t.calls = slices.Delete(t.calls, 0, 1)
		t.stuck, t.runs = false, c
		dead := t.dead
		t.mu.Unlock()
		busy = true
		if dead != nil && !c.last {
			c.done <- dead
			continue
		}
		err := guard(c.fn)
		t.note(err)
		t.mu.Lock()
		if t.left != nil {
			t.left, t.jam = nil, make(chan struct{})
		}
		t.runs = nil
		t.mu.Unlock()
		c.done <- err
	}
}

// guard turns a panic into an error: the thread must survive it.
func guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return fn()
}

var errClosed = errors.New("device is closed")

// do runs fn on the thread and waits for it, or until ctx ends; fn then runs nevertheless, so it must not use what the caller frees.
func (t *thread) do(ctx context.Context, fn func() error) error { return t.hand(ctx, fn, false) }

// patience is how long cleaning up waits for the thread. A call of CANN may hang, such as that which connects ranks, and a process must end nevertheless.
const patience = 30 * time.Second

// leftTime is how long a call may still take whose caller gave up, such as the making of a group whose other ranks are gone. After that nobody waits for
// the thread any more.
const leftTime = 3 * time.Second

var errStuck = errors.New("the thread of the device is inside of a call of CANN that does not return; what the device has ends with the process")

// clean is do for what must be done although the device is dead. It gives up when the thread does not come.
func (t *thread) clean(fn func() error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), t.patience, errStuck)
	defer cancel()
	err := t.hand(ctx, fn, true)
	if errors.Is(err, errStuck) {
		t.mu.Lock()
		t.stuck = len(t.calls) > 0
		t.mu.Unlock()
	}
	return err
}

func (t *thread) hand(ctx context.Context, fn func() error, last bool) error {
	c := &call{fn: fn, done: make(chan error, 1), last: last}
	t.mu.Lock()
	if t.stop {
		t.mu.Unlock()
		return fmt.Errorf("%s: %w", t.name, errClosed)
	}
	if t.dead != nil && !last {
		t.mu.Unlock()
		return t.dead
	}
	if t.stuck && last {
		t.mu.Unlock()
		return fmt.Errorf("%s: %w", t.name, errStuck)
	}
	t.calls = append(t.calls, c)
	jam := t.jam
	t.mu.Unlock()
	t.notify()
	select {
	case err := <-c.done:
		return err
	case <-jam: // what was handed over runs nevertheless, if the thread ever comes back
		return fmt.Errorf("%s: %w", t.name, errStuck)
	case <-ctx.Done():
		t.leave(c)
		return fmt.Errorf("%s: waiting for the thread of the device: %w", t.name, context.Cause(ctx))
	}
}

// leave notes that the caller of c gave up.
func (t *thread) leave(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs != c {
		return
	}
	t.left = c
	time.AfterFunc(t.leftTime, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.left == c {
			close(t.jam)
		}
	})
}

// jammed is closed while the thread is in a call that was left long ago, and when that becomes so.
func (t *thread) jammed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.jam
}

// end makes the thread return; nothing may be handed to it any more. A thread that hangs in CANN stays.
func (t *thread) end() {
	t.mu.Lock()
	t.stop = true
	t.mu.Unlock()
	t.notify()
	select {
	case <-t.ended:
	case <-time.After(t.patience):
	}
}

// poll asks for everything that somebody waits for.
func (t *thread) poll() bool {
	before := len(t.waits)
	for i := 0; i < len(t.waits); {
		over, err := t.waits[i].poll()
		if !over {
			i++
			continue
		}
		t.waits = slices.Delete(t.waits, i, i+1)
		t.note(err) // ends all other waits if the device died
	}
	return len(t.waits) != before
}

// probe looks for failures that no event tells: a stream that stopped will not reach the events behind the failure.
func (t *thread) probe() {
	for _, s := range t.streams {
		if s.dirty && t.alive() == nil {
			s.collect()
		}
	}
}

// at is an event's time since the device was opened.
func (t *thread) at(e cann.Event) (time.Duration, error) {
	us, err := t.lib.Timestamp(e)
	return time.Duration(us-t.base) * time.Microsecond, err
}
