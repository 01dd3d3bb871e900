package launch

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
)

const (
	tailLines = 20       // lines of a rank that a failure report shows
	tailWidth = 1000     // bytes of each of them
	maxLine   = 64 << 10 // longer lines are split, which bounds the memory of the supervisor
)

// pump cuts one stream of one rank into lines.
type pump struct {
	lines func([]byte)  // takes whole lines, as a terminal would show them; it may not keep them
	live  func([]byte)  // takes an incomplete line at once: rank 0 on a terminal; nil: nobody looks
	reads *atomic.Int64 // shared by all pumps: shows whether output still arrives
	rest  []byte
	out   []byte
}

// run reads until the stream ends.
func (p *pump) run(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		p.reads.Add(1)
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
	// A progress line is redrawn for hours without a newline: keep only what is visible.
	if i := bytes.LastIndexByte(p.rest[:max(0, len(p.rest)-1)], '\r'); i >= 0 {
		p.rest = p.rest[:copy(p.rest, p.rest[i+1:])]
	}
	for len(p.rest) >= maxLine {
		p.line(p.rest[:maxLine])
		p.rest = p.rest[:copy(p.rest, p.rest[maxLine:])]
	}
	if len(p.out) > 0 {
		p.lines(p.out)
	}
	if p.live != nil && len(p.rest) > 0 {
		p.live(visible(p.rest))
	}
}

func (p *pump) line(l []byte) {
	p.out = append(p.out, visible(l)...)
	p.out = append(p.out, '\n')
}

// wipes are the sequences with which programs clear a line before redrawing it.
var wipes = [][]byte{[]byte("\x1b[2K\r"), []byte("\r\x1b[2K"), []byte("\r\x1b[K")}

// visible returns what a terminal would show of a line that was redrawn with carriage returns.
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

// last returns the kept lines, oldest first.
func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for i := max(0, t.n-tailLines); i < t.n; i++ {
		out = append(out, t.ring[i%tailLines])
	}
	return out
}
