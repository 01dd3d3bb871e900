package shm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"golang.org/x/sys/unix"
)

// TestNoRoomIsTold has one of three ranks find no shared memory. The others learn of it, whether they have already arrived or come later; no rank waits
// for the join timeout.
func TestNoRoomIsTold(t *testing.T) {
	for name, size := range map[string]string{"rank 0": "64k", "rank 1": "1600k"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
				t.Skip("cannot mount a tmpfs: ", err)
			}
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			errs := make([]error, 3)
			var wg sync.WaitGroup
			for r := range errs {
				wg.Go(func() {
					if r == 2 { // rank 0 is gone by then
						time.Sleep(300 * time.Millisecond)
					}
					_, errs[r] = Join(ctx, Config{Job: "job", Rank: r, Size: 3, Dir: dir})
				})
			}
			wg.Wait()
			for r, err := range errs {
				if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no shared memory") {
					t.Errorf("rank %d is not told why: %v", r, err)
				}
			}
			if peer := (*comm.PeerError)(nil); !errors.As(errs[2], &peer) {
				t.Errorf("rank 2 came when all was over: %v", errs[2])
			}
			empty(t, dir)
		})
	}
}

// TestRefusalExpires checks that an unread refusal expires and is swept.
func TestRefusalExpires(t *testing.T) {
	dir := meetingPlace(t)
	d, err := openFolder(ourFolder(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	d.refuse("job", []int{1, 2}, errors.New("no room\nhint: none"))
	Sweep(dir)
	if reason, ok := d.refused("job", 1); !ok || reason != "no room" {
		t.Errorf("got %q, %v", reason, ok)
	}
	if _, ok := d.refused("job", 1); ok {
		t.Error("a note is read twice")
	}
	old := unix.NsecToTimespec(time.Now().Add(-2 * refusalAge).UnixNano())
	path := filepath.Join(d.path, refusalName("job", 2))
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{old, old}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Fatal(err)
	}
	Sweep(dir)
	if _, err := os.Lstat(path); err == nil {
		t.Error("an old note was not swept")
	}
	empty(t, dir)
}

// A sweep that runs while rank 0 gives up must not take away the folder between the removal of the file and the refusals in it: later ranks
// would wait until their timeout.
func TestRefusalSurvivesSweep(t *testing.T) {
	dir := meetingPlace(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				Sweep(dir)
			}
		}
	})
	cfg := Config{Job: "swept", Size: 2, Dir: dir}
	for i := range 300 {
		f, over, err := create(cfg)
		if err != nil {
			t.Error(err)
			break
		}
		over(errors.New("no memory"))
		f.close()
		late := cfg
		late.Rank = 1
		if fd, err := tryAttach(late); fd >= 0 || err == nil {
			t.Errorf("round %d: rank 1 finds no refusal", i)
			break
		}
	}
	close(stop)
	wg.Wait()
	Sweep(dir)
}
