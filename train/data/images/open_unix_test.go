//go:build unix

package images

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Where a process may open few files, shards leave most of them to others.
func TestFewFiles(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Skip(err)
	}
	few := was
	few.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	one := archive(t, "", "1.jpg", "PIC", "1.cls", "0")
	for i := range 40 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.tar", i)), one, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewShards(t.Context(), filepath.Join(dir, "*.tar"), ShardOptions{Options: tinyCrop, Cache: "-"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 2 * s.Len() {
		if _, err := s.Encoded(i%s.Len(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.many != 32 {
		t.Errorf("%d of %d are open", s.many, s.Len())
	}
}
