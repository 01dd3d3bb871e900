package telemetry

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"

	"github.com/gotrain/gotrain/train/foreign"
)

// wipe clears the line that the cursor is on. The carriage return comes last, so that a supervisor that shows only what follows it does not show the
// escape sequence.
const wipe = "\x1b[2K\r"

// Terminal is the destination for output to people. If it is a terminal, it has one progress line at the bottom, which is erased before other lines
// are written. It is safe for concurrent use.
type Terminal struct {
	mu      sync.Mutex
	w       io.Writer
	columns int
	colour  bool
	live    string
	buf     []byte
}

// NewTerminal writes to w. columns is the width of the terminal, or 0 if w is not one.
func NewTerminal(w io.Writer, columns int, colour bool) *Terminal {
	return &Terminal{w: w, columns: columns, colour: colour && columns > 0}
}

// Stdout is the standard output. It counts as a terminal if it is one, or if a supervisor that forwards to one says so; it has colour unless NO_COLOR
// is set or TERM is dumb. If the reader is gone or stalls, lines are dropped (launch.Stream).
func Stdout() *Terminal {
	columns, _ := launch.Terminal(os.Stdout, os.LookupEnv)
	if os.Getenv("TERM") == "dumb" {
		columns = 0
	}
	return NewTerminal(launch.NewStream(os.Stdout), columns, os.Getenv("NO_COLOR") == "")
}

// Flush waits a moment for a slow reader, and gives up if it stalls.
func (t *Terminal) Flush() {
	if s, ok := t.w.(*launch.Stream); ok {
		s.Flush(time.Second, nil)
	}
}

// Live reports whether a progress line is possible.
func (t *Terminal) Live() bool { return t.columns > 0 }

// Write writes whole lines.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live == "" {
		return t.w.Write(p)
	}
	t.buf = append(append(append(t.buf[:0], wipe...), p...), t.live...)
	if _, err := t.w.Write(t.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Progress shows text in the progress line; "" removes it. In a pipe it does nothing.
func (t *Terminal) Progress(text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == 0 || text == t.live {
		return nil
	}
	if r := []rune(text); len(r) >= t.columns { // a full line would wrap, and a wrapped line cannot be erased
		text = string(r[:t.columns-1])
	}
	text = foreign.Printable(text)
	t.live = text
	t.buf = append(append(t.buf[:0], wipe...), text...)
	_, err := t.w.Write(t.buf)
	return err
}

// The colours in use.
const (
	plain  = ""
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	reset  = "\x1b[0m"
)

// paint adds text in a colour, if colours are enabled.
func (t *Terminal) paint(b []byte, colour, text string) []byte {
	if !t.colour || colour == plain {
		return append(b, text...)
	}
	b = append(b, colour...)
	b = append(b, text...)
	return append(b, reset...)
}
