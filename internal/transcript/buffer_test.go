package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWaitForTextOfAnotherGoroutine(t *testing.T) {
	var b Buffer
	go func() {
		for i := range 3 {
			fmt.Fprintln(&b, "step", i)
			time.Sleep(time.Millisecond)
		}
	}()
	b.WaitFor(t, "step", 3)
	if got, want := b.String(), "step 0\nstep 1\nstep 2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// failure is a test that notes how it failed.
type failure string

func (f *failure) Helper()                           {}
func (f *failure) Fatalf(format string, args ...any) { *f = failure(fmt.Sprintf(format, args...)) }

func TestWaitShowsWhatWasPrinted(t *testing.T) {
	var b Buffer
	var f failure
	fmt.Fprint(&b, "ready\npanic: no memory\n")
	b.waitFor(&f, "ready", 2, 10*time.Millisecond)
	if !strings.Contains(string(f), `"ready" was printed 1 times`) || !strings.Contains(string(f), "no memory") {
		t.Errorf("the failure does not tell what happened: %q", f)
	}
}
