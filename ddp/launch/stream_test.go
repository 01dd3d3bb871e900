package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gate is a reader that takes bytes only while it is open.
type gate struct {
	mu   sync.Mutex
	cond *sync.Cond
	open bool
	err  error
	got  bytes.Buffer
}

func newGate(open bool) *gate {
	g := &gate{open: open}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.open {
		g.cond.Wait()
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.got.Write(p)
}

func (g *gate) set(open bool, err error) {
	g.mu.Lock()
	g.open, g.err = open, err
	g.cond.Broadcast()
	g.mu.Unlock()
}

func (g *gate) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.String()
}

// All bytes arrive in order where the reader reads, before Write returns.
func TestStreamWrites(t *testing.T) {
	g := newGate(true)
	s := NewStream(g)
	s.Patience = time.Minute
	want := ""
	for i := range 200 {
		line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", i*50))
		want += line
		if n, err := s.Write([]byte(line)); n != len(line) || err != nil || g.String() != want {
			t.Fatalf("line %d: %d, %v", i, n, err)
		}
	}
}

// A stalled reader does not block the writer; what fits is buffered for it, and a note reports the rest.
func TestStreamWithStalledReader(t *testing.T) {
	g := newGate(false)
	s := &Stream{w: g, Keep: 100, Patience: time.Millisecond}
	for i := range 50 {
		fmt.Fprintf(s, "line %02d..\n", i) // 10 bytes
	}
	if s.Flush(time.Millisecond, nil) {
		t.Error("flushed although nothing was read")
	}
	cancel := make(chan struct{})
	close(cancel)
	if s.Flush(time.Hour, cancel) {
		t.Error("flushed although nothing was read")
	}
	g.set(true, nil)
	if !s.Flush(time.Minute, nil) {
		t.Fatal("not flushed")
	}
	s.Patience = time.Minute
	fmt.Fprintln(s, "again")
	want := ""
	for i := range 10 {
		want += fmt.Sprintf("line %02d..\n", i)
	}
	want += "[40 lines were dropped: they were not read, or could not be written]\nagain\n"
	if got := g.String(); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A full disk costs lines only, and may have room again.
func TestStreamWithFullDisk(t *testing.T) {
	g := newGate(true)
	var told []error
	tell := make(chan error, 9)
	s := &Stream{w: g, Patience: time.Minute, OnError: func(e error) { tell <- e }}
	fmt.Fprint(s, "no end")
	g.set(true, syscall.ENOSPC)
	for range 3 {
		if _, err := fmt.Fprintln(s, "lost"); err != nil {
			t.Fatal(err)
		}
	}
	told = append(told, <-tell)
	g.set(true, nil)
	fmt.Fprintln(s, "first")
	fmt.Fprintln(s, "second")
	if got := g.String(); got != "no endfirst\n[3 lines were dropped: they were not read, or could not be written]\nsecond\n" {
		t.Errorf("got %q", got)
	}
	if len(tell) > 0 || !errors.Is(told[0], syscall.ENOSPC) {
		t.Errorf("told %v and %d more", told, len(tell))
	}
}

func TestStreamConcurrently(t *testing.T) {
	g := newGate(true)
	s := &Stream{w: g, Patience: time.Minute}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				fmt.Fprintf(s, "%s\n", strings.Repeat(string(rune('a'+i)), 600))
			}
		})
	}
	wg.Wait()
	n := 0
	for line := range strings.Lines(g.String()) {
		if n++; line != strings.Repeat(line[:1], 600)+"\n" {
			t.Fatalf("mixed line %q", line)
		}
	}
	if n != 800 {
		t.Errorf("%d lines", n)
	}
}

// On the real stdout: without OutliveReaders Go ends the process; with it only the output is lost.
func TestOutliveReaders(t *testing.T) {
	for _, outlive := range []string{"", "outlive"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "GOTRAIN_TEST_ROLE=broken:"+outlive)
		rd, wr, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		rd.Close()
		cmd.Stdout = wr
		err = cmd.Run()
		wr.Close()
		if (err == nil) != (outlive != "") {
			t.Errorf("%q: %v", outlive, err)
		}
	}
}

var _ io.Writer = (*Stream)(nil)
