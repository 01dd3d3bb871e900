package launch

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/term"
)

const (
	tailLines = 20       // lines of a rank that a failure report shows
	tailWidth = 1000     // bytes of each of them
	maxLine   = 64 << 10 // a longer line is broken, so that a rank cannot make the supervisor keep it all
	clearLine = "\r\x1b[K"
)

// Terminal says whether lines on a stream may be redrawn in place with a carriage return, and how many columns there
// are: the stream is a terminal, or a supervisor passes stdout on to one (GOTRAIN_COLUMNS).
func Terminal(f *os.File, lookup Lookup) (columns int, ok bool) {
	if _, mpi := lookup("OMPI_COMM_WORLD_SIZE"); mpi {
		return 0, false // mpirun gives each rank a pseudo-terminal and mixes what comes out of them
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

// console is where the lines of all ranks go. It writes whole lines only, except one live line (progress) that is
// wiped before the next whole line.
type console struct {
	mu       sync.Mutex
	out, err io.Writer
	live     bool
	gone     func() // called once when nobody reads the output any more
	isGone   bool
}

// lines writes complete lines to w in one call.
func (c *console) lines(w io.Writer, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live {
		c.write(c.out, []byte(clearLine))
		c.live = false
	}
	c.write(w, text)
}

// progress draws the live line.
func (c *console) progress(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(c.out, append([]byte(clearLine), text...))
	c.live = len(text) > 0
}

func (c *console) write(w io.Writer, b []byte) {
	if c.isGone && w == c.out {
		return
	}
	if _, err := w.Write(b); err != nil && w == c.out && !c.isGone {
		// Training goes on to a checkpoint; only the words are lost.
		c.isGone = true
		if c.gone != nil {
			c.gone()
		}
	}
}

// pump copies one stream of one rank to the console, line by line.
type pump struct {
	console *console
	to      io.Writer
	prefix  string
	tail    *tail
	live    bool // draw unfinished lines at once: rank 0 on a terminal
	rest    []byte
	out     []byte
}

// run reads until the stream ends.
func (p *pump) run(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		p.feed(buf[:n])
		if err != nil {
			if len(visible(p.rest)) > 0 {
				p.feed([]byte("\n"))
			}
			return
		}
	}
}

func (p *pump) feed(b []byte) {
	p.out = p.out[:0]
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		p.rest = append(p.rest, b[:i]...)
		p.line(p.rest)
		p.rest = p.rest[:0]
		b = b[i+1:]
	}
	p.rest = append(p.rest, b...)
	// A line of progress is redrawn for hours without an end: only what is to be seen is kept.
	if i := bytes.LastIndexByte(p.rest[:max(0, len(p.rest)-1)], '\r'); i >= 0 {
		p.rest = p.rest[:copy(p.rest, p.rest[i+1:])]
	}
	for len(p.rest) >= maxLine {
		p.line(p.rest[:maxLine])
		p.rest = p.rest[:copy(p.rest, p.rest[maxLine:])]
	}
	if len(p.out) > 0 {
		p.console.lines(p.to, p.out)
	}
	if p.live && len(p.rest) > 0 {
		p.console.progress(visible(p.rest))
	}
}

func (p *pump) line(l []byte) {
	l = visible(l)
	p.tail.add(l)
	p.out = append(p.out, p.prefix...)
	p.out = append(p.out, l...)
	p.out = append(p.out, '\n')
}

// wipes are what programs write to clear a line before they draw it anew.
var wipes = [][]byte{[]byte("\x1b[2K\r"), []byte("\r\x1b[2K"), []byte("\r\x1b[K")}

// visible is what a terminal would show of a line that was redrawn with carriage returns.
func visible(l []byte) []byte {
	for _, w := range wipes {
		if i := bytes.LastIndex(l, w); i >= 0 {
			l = l[i+len(w):]
		}
	}
	l = bytes.TrimRight(l, "\r")
	if i := bytes.LastIndexByte(l, '\r'); i >= 0 {
		l = l[i+1:]
	}
	return l
}

// tail keeps the last lines of a rank.
type tail struct {
	mu   sync.Mutex
	ring [tailLines]string
	n    int
}

func (t *tail) add(l []byte) {
	if len(l) > tailWidth {
		l = l[:tailWidth]
	}
	t.mu.Lock()
	t.ring[t.n%tailLines] = string(l)
	t.n++
	t.mu.Unlock()
}

// last gives the kept lines, oldest first.
func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for i := max(0, t.n-tailLines); i < t.n; i++ {
		out = append(out, t.ring[i%tailLines])
	}
	return out
}
