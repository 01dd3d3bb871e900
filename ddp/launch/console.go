package launch

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"golang.org/x/term"
)

const clearLine = "\r\x1b[K"

// Terminal reports whether lines on a stream may be redrawn in place with a carriage return, and its width: the stream is
// a terminal, or a supervisor passes stdout on to one (GOTRAIN_COLUMNS).
func Terminal(f *os.File, lookup Lookup) (columns int, ok bool) {
	if _, mpi := lookup("OMPI_COMM_WORLD_SIZE"); mpi {
		return 0, false // mpirun gives each rank a pseudo-terminal and interleaves their output
	}
	if term.IsTerminal(int(f.Fd())) {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w, true
		}
		return 80, true
	}
	if v, set := lookup("GOTRAIN_COLUMNS"); set && f == os.Stdout {
		if w, err := strconv.Atoi(v); err == nil && w > 0 {
			return w, true
		}
	}
	return 0, false
}

// console merges the output of all ranks. It writes whole lines only, except for one live line (progress), which is
// erased before the next whole line.
type console struct {
	mu       sync.Mutex
	out, err *Stream
	live     bool

	wordsMu sync.Mutex  // not mu, which may be held while a reader is slow
	words   chan []byte // lines of the supervisor itself; nil after close
	spoken  chan struct{}
}

const (
	consoleKeep = 16 << 20 // bytes buffered for a slow reader
	consoleEnd  = time.Minute
)

// newConsole writes to two streams, which may be the same.
func newConsole(out, err io.Writer) *console {
	c := &console{words: make(chan []byte, 64), spoken: make(chan struct{})}
	open := func(w io.Writer, name string) *Stream {
		return &Stream{w: w, Keep: consoleKeep, OnError: func(e error) {
			c.say("cannot write to %s: %v; the ranks continue, and their lines are dropped", name, e)
		}}
	}
	c.out = open(out, "stdout")
	if c.err = c.out; !sameTarget(out, err) {
		c.err = open(err, "stderr")
	}
	go func(words <-chan []byte) {
		defer close(c.spoken)
		for b := range words {
			c.lines(c.err, b)
		}
	}(c.words)
	return c
}

// sameTarget reports whether two writers end in the same file or terminal, where their order matters.
func sameTarget(a, b io.Writer) bool {
	f, ok := a.(*os.File)
	g, ok2 := b.(*os.File)
	if ok && ok2 {
		s, err := f.Stat()
		t, err2 := g.Stat()
		return err == nil && err2 == nil && os.SameFile(s, t)
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// say prints a line of the supervisor itself. It never waits for a reader.
func (c *console) say(format string, a ...any) {
	c.wordsMu.Lock()
	defer c.wordsMu.Unlock()
	if c.words == nil {
		return
	}
	select {
	case c.words <- fmt.Appendf(nil, "[launch] "+format+"\n", a...):
	default: // the 64 lines before it are still unread
	}
}

// close waits until the reader has taken the remaining output, makes no progress any more, or cancel is closed.
func (c *console) close(cancel <-chan struct{}) {
	c.wordsMu.Lock()
	close(c.words)
	c.words = nil
	c.wordsMu.Unlock()
	<-c.spoken
	if !c.out.Flush(consoleEnd, cancel) && c.err != c.out {
		c.err.Write([]byte("[launch] the last lines of stdout were not read and are lost\n"))
	}
	c.err.Flush(consoleEnd, cancel)
}

// lines writes complete lines.
func (c *console) lines(to *Stream, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live {
		c.out.Write([]byte(clearLine))
		c.live = false
	}
	to.Write(text)
}

// progress draws the live line.
func (c *console) progress(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Write(append([]byte(clearLine), text...))
	c.live = len(text) > 0
}
