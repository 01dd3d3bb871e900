package launch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "dos\r": "dos", "50%\r60%": "60%", "50%\r60%\r": "60%", "": "", "\r": "",
		"\x1b[2K\rstep 1\x1b[2K\rstep 2": "step 2", "step 2\x1b[2K\r": "", "\r\x1b[Kline": "line",
	} {
		if got := string(visible([]byte(in))); got != want {
			t.Errorf("%q shows %q, want %q", in, got, want)
		}
	}
}

// Whatever pieces the bytes come in, whole lines come out.
func TestPumpPieces(t *testing.T) {
	const text = "one\ntwo\r\n10%\r20%\rthree\n\nlast without an end"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		c := newConsole(&out, &out)
		to := &printer{console: c, prefix: "> "}
		p := &pump{lines: func(b []byte) { to.print(false, b) }, reads: new(atomic.Int64)}
		p.run(&pieces{text, size})
		if want := "> one\n> two\n> three\n> \n> last without an end\n"; out.String() != want {
			t.Fatalf("pieces of %d: %q, want %q", size, out.String(), want)
		}
		if got := strings.Join(to.tail.last(), "|"); got != "one|two|three||last without an end" {
			t.Fatalf("pieces of %d: tail %q", size, got)
		}
	}
}

type pieces struct {
	rest string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, errors.New("end")
	}
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// The progress of rank 0 is drawn at once and wiped before a line of anybody; it does not pile up in memory.
func TestPumpProgress(t *testing.T) {
	var out bytes.Buffer
	c := newConsole(&out, &out)
	first, second := &printer{console: c}, &printer{console: c, prefix: "[rank 1] "}
	zero := &pump{lines: func(b []byte) { first.print(false, b) }, reads: new(atomic.Int64), live: c.progress}
	one := &pump{lines: func(b []byte) { second.print(false, b) }, reads: new(atomic.Int64)}
	zero.feed([]byte("\x1b[2K\r10%"))
	one.feed([]byte("warning\n"))
	zero.feed([]byte("\x1b[2K\r20%"))
	if want := "\r\x1b[K10%\r\x1b[K[rank 1] warning\n\r\x1b[K20%"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	for range 100_000 {
		zero.feed([]byte("\x1b[2K\rstep"))
	}
	if n := cap(zero.rest); n > 4096 {
		t.Errorf("%d bytes are kept for a line of progress", n)
	}
	if got := first.tail.last(); len(got) != 0 {
		t.Errorf("progress counts as lines: %q", got)
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var tl tail
	for i := range tailLines + 5 {
		tl.add(fmt.Append(nil, i))
	}
	got := tl.last()
	if len(got) != tailLines || got[0] != "5" || got[tailLines-1] != fmt.Sprint(tailLines+4) {
		t.Errorf("got %q", got)
	}
}

func TestTerminalBySupervisor(t *testing.T) {
	if w, ok := Terminal(os.Stdout, env("GOTRAIN_COLUMNS=99")); !ok || w == 0 {
		t.Errorf("%d %v", w, ok)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := Terminal(f, env("GOTRAIN_COLUMNS=99")); ok {
		t.Error("another stream than stdout is a terminal")
	}
}
