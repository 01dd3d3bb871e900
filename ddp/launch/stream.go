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

// Stream writes to stdout or stderr for a process that must not end or block because of its reader. A reader that exits (| head),
// a full disk behind a redirection, and a paused pager or terminal cost lines, never the run: Write does not fail and does not block for long.
// Stream is safe for concurrent use.
//
// Write returns when its bytes are written, which is normally at once. A reader slower than Patience falls behind: up to Keep bytes are
// then buffered for it. When the buffer is full and nothing moves for Patience, lines are dropped; once output flows again, a note in the stream gives
// their number.
type Stream struct {
	Keep     int           // bytes; 0 is 1 MiB
	Patience time.Duration // 0 is a second
	OnError  func(error)   // called once, from another goroutine, at the first error of the underlying writer; may be nil

	w        io.Writer
	mu       sync.Mutex
	backlog  []byte
	idle     chan struct{} // closed when the backlog is written; nil when nothing is pending
	moved    chan struct{} // closed at each progress
	behind   bool          // a wait for the reader timed out, and it has not caught up since
	stuck    bool          // nothing moved although the backlog is full
	lost     int           // lines
	tornLine bool          // the last line written has no newline
	failed   bool          // the last write
	err      error         // the first one of the underlying writer
}

// NewStream returns a Stream over w, such as os.Stdout. Programs that use it should also call OutliveReaders.
func NewStream(w io.Writer) *Stream { return &Stream{w: w} }

// piece is the size of one write: a pipe accepts that much at once, so progress of a slow reader is visible.
const piece = 4096

// Write implements io.Writer. It never fails.
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

// Flush waits for the reader to take the buffered bytes, as long as some are taken within patience. It reports whether all were written; dropped bytes
// are not counted.
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

// Err returns the first error of the underlying writer. Call Flush before.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// room waits until n bytes fit, as long as the reader makes progress.
func (s *Stream) room(n int) {
	for len(s.backlog) > 0 && len(s.backlog)+n > s.keep() && !s.stuck {
		s.stuck = !s.await(s.moved)
	}
}

// note appends the number of dropped lines, on a line of its own.
func (s *Stream) note() {
	if len(s.backlog) > 0 && s.backlog[len(s.backlog)-1] != '\n' || len(s.backlog) == 0 && s.tornLine {
		s.backlog = append(s.backlog, '\n')
	}
	s.backlog = fmt.Appendf(s.backlog, "[%d lines were dropped: they were not read, or could not be written]\n", s.lost)
	s.lost = 0
}

// await waits up to Patience for a channel, without holding the lock.
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

// run writes the backlog. It is the only goroutine that a reader can block.
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

// done removes n bytes, written or lost, from the backlog.
func (s *Stream) done(n int, err error) {
	if err != nil {
		s.lost += max(1, bytes.Count(s.backlog[:n], []byte{'\n'}))
		if s.err == nil {
			s.err = err
			if s.OnError != nil {
				go s.OnError(err)
			}
		}
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

// OutliveReaders keeps this process alive when it writes to a pipe without a reader; the write then only returns an error. By default, Go ends
// a process that does so on stdout or stderr (SIGPIPE), which is right for a command like ls but would lose the work of a training run.
func OutliveReaders() {
	// Not signal.Ignore, which child processes would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
