package train

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm/shm"
)

func TestSameFolder(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "another-mount")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		want  bool
	}{
		{[]string{one, one, one}, true},
		{[]string{one, link, one}, true},
		{[]string{one, two, one}, false},
		{[]string{one, filepath.Join(one, "gone"), one}, false},
		{[]string{filepath.Join(one, "gone"), one, one}, false},
	} {
		g, err := shm.NewLocal(len(c.paths))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for r, p := range c.paths {
			wg.Go(func() {
				defer g[r].Close()
				if got, err := SameFolder(context.Background(), g[r], p); err != nil || got != c.want {
					t.Errorf("%v: rank %d finds %v, %v", c.paths, r, got, err)
				}
			})
		}
		wg.Wait()
	}
}
