//go:build unix

package foreign

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe without a writer is rejected without waiting.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Skip(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "it is a pipe, not a regular file\nhint: ") {
		t.Error(err)
	}
	if _, err := ReadFile("/dev/zero", 10); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
}
