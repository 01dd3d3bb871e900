package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Stream writes to stdout or stderr for a process that must not end, or stand still, because of who reads there. A reader that is gone (| head),
// a full disk behind a redirection and a pager or terminal that is paused cost lines, never the run: Write does not fail, and does not wait for long.
// It is safe for concurrent use.
//
// Write returns when its bytes are out, which is at once as a rule. When the reader is slower than Patience it falls behind: up to Keep bytes are
// then kept for it. When those are full, and nothing moves for Patience, lines are dropped; a note in the stream says how many, once it flows again.
type Stream struct {
	Keep     int           // bytes; 0 is 1 MiB
	Patience time.Duration // 0 is a second
	OnError  func(error)   // called once, from another goroutine, at the first error of the stream underneath; may be nil

	w        io.Writer
	mu       sync.Mutex
	backlog  []byte
	idle     chan struct{} // closed when the backlog is out; nil when nothing is under way
	moved    chan struct{} // closed at every progress
	behind   bool          // waiting for the reader was in vain, and it did not catch up since
	stuck    bool          // nothing moved although the backlog is full
	lost     int           // lines
	tornLine bool          // the last line that went out has no end
	failed   bool          // the last write
	told     bool          // OnError was called
}

// NewStream makes a Stream over w, such as os.Stdout. Programs that write to one call OutliveReaders too.
func NewStream(w io.Writer) *Stream { return &Stream{w: w} }

// piece is what goes to the reader at once: a pipe takes so much in one go, so a slow reader is seen to move.
const piece = 4096

// Write never fails.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(len(p))
	if len(s.backlog) > 0 && len(s.backlog)+len(p) > s.keep() {
		s.lost += max(1, bytes.Count(p, []byte{'\n'}))
		return len(p), nil
	}
	if s.lost > 0 && !s.failed {
		s.note()
	}
	s.backlog = append(s.backlog, p...)
	if s.idle == nil {
		s.idle, s.moved = make(chan struct{}), make(chan struct{})
		go s.run()
	}
	if !s.behind && !s.await(s.idle) {
		s.behind = s.idle != nil // otherwise it finished at that very moment
	}
	return len(p), nil
}

// Flush waits for the reader to take what was kept for it, as long as it moves every now and then. It says whether all is out; bytes that were
// dropped are not counted.
func (s *Stream) Flush(patience time.Duration, cancel <-chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.idle != nil {
		moved := s.moved
		s.mu.Unlock()
		t := time.NewTimer(patience)
		ok := false
		select {
		case <-moved:
			ok = true
		case <-t.C:
		case <-cancel:
		}
		t.Stop()
		s.mu.Lock()
		if !ok {
			return s.idle == nil
		}
	}
	return true
}

// room waits until n bytes fit, as long as the reader moves.
func (s *Stream) room(n int) {
	for len(s.backlog) > 0 && len(s.backlog)+n > s.keep() && !s.stuck {
		s.stuck = !s.await(s.moved)
	}
}

// note says how many lines were dropped, between lines of others.
func (s *Stream) note() {
	if len(s.backlog) > 0 && s.backlog[len(s.backlog)-1] != '\n' || len(s.backlog) == 0 && s.tornLine {
		s.backlog = append(s.backlog, '\n')
	}
	s.backlog = fmt.Appendf(s.backlog, "[%d lines were dropped: nobody read them, or they could not be written]\n", s.lost)
	s.lost = 0
}

// await waits for a channel without the lock, up to Patience.
func (s *Stream) await(c <-chan struct{}) bool {
	patience := s.Patience
	if patience <= 0 {
		patience = time.Second
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

func (s *Stream) keep() int {
	if s.Keep > 0 {
		return s.Keep
	}
	return 1 << 20
}

// run writes the backlog out. It is the only goroutine that a reader can block.
func (s *Stream) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.backlog) > 0 {
		b := s.backlog[:min(piece, len(s.backlog))]
		s.mu.Unlock()
		_, err := s.w.Write(b)
		s.mu.Lock()
		s.done(len(b), err)
	}
	close(s.idle)
	s.idle, s.behind, s.backlog = nil, false, nil
}

// done takes n written bytes, or lost ones, off the backlog.
func (s *Stream) done(n int, err error) {
	if err != nil {
		s.lost += max(1, bytes.Count(s.backlog[:n], []byte{'\n'}))
		if !s.told && s.OnError != nil {
			go s.OnError(err)
		}
		s.told = true
		s.failed = true
	} else {
		s.tornLine = s.backlog[n-1] != '\n'
		s.failed = false
	}
	s.backlog = s.backlog[n:]
	s.stuck = false
	close(s.moved)
	s.moved = make(chan struct{})
}

// OutliveReaders keeps this process alive when it writes to a pipe that nobody reads any more; such a write then is an error and no more. Without it Go ends
// a process that does so on stdout or stderr (SIGPIPE), which is right for a command like ls, and costs a training run its work.
func OutliveReaders() {
	// Not signal.Ignore, which programs that are started from here would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
