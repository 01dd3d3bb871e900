package telemetry

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"

	"github.com/gotrain/gotrain/train/foreign"
)

// wipe clears the line that the cursor is on. The carriage return comes last, so that a supervisor which shows what is after it sees
// nothing of the escape.
const wipe = "\x1b[2K\r"

// Terminal is where lines for people go. When it is a terminal it has one line of progress at the bottom, which is wiped before other
// lines are written. It is safe for concurrent use.
type Terminal struct {
	mu      sync.Mutex
	w       io.Writer
	columns int
	colour  bool
	live    string
	buf     []byte
}

// NewTerminal writes to w. columns is the width of the terminal, 0 where w is none.
func NewTerminal(w io.Writer, columns int, colour bool) *Terminal {
	return &Terminal{w: w, columns: columns, colour: colour && columns > 0}
}

// Stdout is the standard output: as a terminal if it is one, or if a supervisor that passes it on to one said so; in colour unless NO_COLOR is
// set or TERM is dumb. A reader that is gone or stands still costs lines and nothing else (launch.Stream).
func Stdout() *Terminal {
	columns, _ := launch.Terminal(os.Stdout, os.LookupEnv)
	if os.Getenv("TERM") == "dumb" {
		columns = 0
	}
	return NewTerminal(launch.NewStream(os.Stdout), columns, os.Getenv("NO_COLOR") == "")
}

// Flush waits a moment for a reader that is slow, and gives up on one that stands still.
func (t *Terminal) Flush() {
	if s, ok := t.w.(*launch.Stream); ok {
		s.Flush(time.Second, nil)
	}
}

// Live says whether there can be a line of progress.
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

// Progress shows text in the line at the bottom; "" takes the line away. In a pipe it does nothing.
func (t *Terminal) Progress(text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == 0 || text == t.live {
		return nil
	}
	if r := []rune(text); len(r) >= t.columns { // a full line would wrap, and a wrapped one cannot be wiped
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

// paint adds text in a colour where there are colours.
func (t *Terminal) paint(b []byte, colour, text string) []byte {
	if !t.colour || colour == plain {
		return append(b, text...)
	}
	b = append(b, colour...)
	b = append(b, text...)
	return append(b, reset...)
}
