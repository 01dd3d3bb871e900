package transcript

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// Buffer keeps all that is written to it. Its methods are safe for concurrent use; the zero value is empty and ready.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Test is the part of testing.TB that a wait needs.
type Test interface {
	Helper()
	Fatalf(format string, args ...any)
}

// patience is how long a wait lasts: far longer than a process needs to say something on a busy machine.
const patience = time.Minute

// WaitFor blocks until text has been written the given number of times. It fails the test after a minute.
func (b *Buffer) WaitFor(t Test, text string, times int) {
	t.Helper()
	b.waitFor(t, text, times, patience)
}

func (b *Buffer) waitFor(t Test, text string, times int, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		said := b.String()
		n := strings.Count(said, text)
		if n >= times {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q was printed %d times in %v, not %d times; all that was printed:\n%s", text, n, limit, times, said)
			return
		}
	}
}
