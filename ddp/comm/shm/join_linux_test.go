package shm

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// joinAll joins all ranks from this process, as processes would.
func joinAll(t *testing.T, cfgs []Config) []*Comm {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	group := make([]*Comm, len(cfgs))
	var wg sync.WaitGroup
	for r, cfg := range cfgs {
		cfg.Rank, cfg.Size = r, len(cfgs)
		wg.Go(func() {
			c, err := Join(ctx, cfg)
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			group[r] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, c := range group {
			c.Close()
		}
	})
	return group
}

// TestHeaps runs the collectives with the heap in an anonymous file, and in the control file because one rank cannot open the other.
func TestHeaps(t *testing.T) {
	for name, blind := range map[string]bool{"anonymous": false, "file": true} {
		t.Run(name, func(t *testing.T) {
			job := jobID(t)
			group := joinAll(t, []Config{{Job: job}, {Job: job, fileHeap: blind}, {Job: job}})
			var wg sync.WaitGroup
			for _, c := range group {
				if got := c.files.heap == c.files.control; got != blind {
					t.Errorf("rank %d: heap in the control file: %v", c.rank, got)
				}
				wg.Go(func() {
					if err := hammer(c, 50); err != nil {
						t.Errorf("rank %d: %v", c.rank, err)
					}
				})
			}
			wg.Wait()
			nothingLeft(t, job)
		})
	}
}

// TestNoSpace fills a small tmpfs: Join and Alloc must say so, with a hint.
func TestNoSpace(t *testing.T) {
	small := func(size string) string {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
			t.Skip("cannot mount a tmpfs: ", err)
		}
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
		return dir
	}
	dir := small("512k")
	_, err := Join(context.Background(), Config{Job: "full", Size: 1, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "hint: give the container more") {
		t.Errorf("Join: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
	c, err := Join(context.Background(), Config{Job: "small", Size: 1, Dir: small("4m"), fileHeap: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := c.Alloc(1 << 20); err != nil {
		t.Error(err)
	} else if err := b.Free(); err != nil {
		t.Error(err)
	}
	if _, err := c.Alloc(8 << 20); err == nil || !strings.Contains(err.Error(), "hint: give the container more") {
		t.Errorf("Alloc: %v", err)
	}
	if _, err := c.Alloc(1 << 20); err != nil { // what failed has not eaten what is there
		t.Error(err)
	}
}
