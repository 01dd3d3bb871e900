package launch

import (
	"io/fs"
	"os/exec"
	"syscall"
	"testing"
)

// A start that failed because the machine has run out of something may succeed later, so a supervisor tries it again; a program that is missing stays so.
func TestExhausted(t *testing.T) {
	for _, no := range []syscall.Errno{syscall.EMFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if !exhausted(&fs.PathError{Op: "open", Path: "/dev/null", Err: no}) {
			t.Errorf("%v is taken for a mistake in the command line", no)
		}
	}
	if err := exec.Command("/no/such/program").Start(); err == nil || exhausted(err) {
		t.Errorf("%v is taken for a lack of something", err)
	}
}
