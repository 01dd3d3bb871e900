package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"golang.org/x/sys/unix"
)

// meetingPlace returns a directory like /dev/shm. At the end it must not contain anything of this user.
func meetingPlace(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "test-")
	if err != nil {
		t.Skip("needs a tmpfs at /dev/shm: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return dir
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// ourFolder creates this user's folder and returns its path.
func ourFolder(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("%s%d", prefix, os.Geteuid()))
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// forge writes what a rank 0 of a job of that size would write, and locks it as if rank 0 were alive.
func forge(t testing.TB, path string, bytes int64, change func(*header)) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFD(fd) })
	if err := unix.Ftruncate(fd, max(bytes, pageBytes)); err != nil {
		t.Fatal(err)
	}
	m, err := mapRange(fd, 0, pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	h := viewOf(m.mem, 0).hdr
	*h = header{magic: magic, version: version, size: 2, next: uint64(layoutOf(2).end)}
	change(h)
	m.unmap()
	if err := errors.Join(unix.Ftruncate(fd, bytes), lock(fd, 0)); err != nil {
		t.Fatal(err)
	}
}

// TestStranger tries everything that another user can put where ranks meet: the ranks still meet, among themselves.
func TestStranger(t *testing.T) {
	const stranger = 65534
	first := fmt.Sprintf("%s%d", prefix, os.Geteuid())
	asRoot := func(t *testing.T, path string) {
		if os.Geteuid() != 0 {
			t.Skip("only root can give files away")
		}
		if err := os.Chown(path, stranger, stranger); err != nil {
			t.Fatal(err)
		}
	}
	for name, plant := range map[string]func(t *testing.T, dir string){
		"folder of another user": func(t *testing.T, dir string) {
			path := ourFolder(t, dir)
			forge(t, filepath.Join(path, "job"), layoutOf(2).end, func(*header) {})
			asRoot(t, filepath.Join(path, "job"))
			asRoot(t, path)
		},
		"folder that others may enter": func(t *testing.T, dir string) {
			path := ourFolder(t, dir)
			forge(t, filepath.Join(path, "job"), layoutOf(2).end, func(*header) {})
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
		},
		"link to a folder": func(t *testing.T, dir string) {
			other := t.TempDir()
			if err := errors.Join(os.Chmod(other, 0o700), os.Symlink(other, filepath.Join(dir, first))); err != nil {
				t.Fatal(err)
			}
			forge(t, filepath.Join(other, "job"), layoutOf(2).end, func(*header) {})
		},
		"file": func(t *testing.T, dir string) {
			forge(t, filepath.Join(dir, first), layoutOf(2).end, func(*header) {})
		},
		"file of an older version's name": func(t *testing.T, dir string) {
			forge(t, filepath.Join(dir, first+"-job"), layoutOf(2).end, func(*header) {})
			asRoot(t, filepath.Join(dir, first+"-job"))
		},
		"FIFO": func(t *testing.T, dir string) {
			if err := unix.Mkfifo(filepath.Join(dir, first), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := meetingPlace(t)
			plant(t, dir)
			before, _ := os.ReadDir(dir)
			joinAll(t, []Config{{Job: "job", Dir: dir}, {Job: "job", Dir: dir}})
			if after, _ := os.ReadDir(dir); len(after) != len(before) {
				t.Errorf("before %v, after %v", before, after)
			}
		})
	}
}

// TestFolderRefuses puts files in this user's folder that no rank 0 created: ranks report them at once, and none dies of SIGBUS or hangs.
func TestFolderRefuses(t *testing.T) {
	whole := layoutOf(2).rings
	file := func(bytes int64, change func(*header)) func(testing.TB, string) {
		return func(t testing.TB, path string) { forge(t, path, bytes, change) }
	}
	none := func(*header) {}
	for name, c := range map[string]struct {
		plant func(t testing.TB, path string)
		want  string
	}{
		"empty":        {file(0, none), "not one of gotrain's (0 bytes"},
		"short header": {file(100, none), "not one of gotrain's (100 bytes"},
		"header only":  {file(pageBytes, none), "not one of gotrain's (4096 bytes"},
		"short":        {file(whole-1, none), "not one of gotrain's"},
		"zeros":        {file(whole, func(h *header) { *h = header{} }), "not one of gotrain's"},
		"version":      {file(whole, func(h *header) { h.version++ }), "another version"},
		"size":         {file(whole, func(h *header) { h.size = 7 }), "7 ranks"},
		"open to others": {func(t testing.TB, path string) {
			forge(t, path, whole, none)
			os.Chmod(path, 0o666)
		}, "users other than"},
		"two names": {func(t testing.TB, path string) {
			forge(t, path, whole, none)
			os.Link(path, path+"-too")
		}, "second hard link"},
		"link": {func(t testing.TB, path string) {
			forge(t, path+"-too", whole, none)
			os.Symlink(path+"-too", path)
		}, "was not created by gotrain"},
		"FIFO":   {func(t testing.TB, path string) { unix.Mkfifo(path, 0o600) }, "was not created by gotrain"},
		"folder": {func(t testing.TB, path string) { os.Mkdir(path, 0o700) }, "was not created by gotrain"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := meetingPlace(t)
			c.plant(t, filepath.Join(ourFolder(t, dir), "job"))
			_, err := Join(context.Background(), Config{Job: "job", Rank: 1, Size: 2, Dir: dir})
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %q at once", err, c.want)
			}
		})
	}
}

// TestGiveUpEarly has rank 1 give up when rank 0 has created the file but done nothing else.
func TestGiveUpEarly(t *testing.T) {
	dir := meetingPlace(t)
	f, over, err := create(Config{Job: "job", Size: 2, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = Join(ctx, Config{Job: "job", Rank: 1, Size: 2, Dir: dir})
	if late := (*comm.TimeoutError)(nil); !errors.As(err, &late) || fmt.Sprint(late.Missing) != "[0]" {
		t.Errorf("got %v, want a timeout that names rank 0", err)
	}
	f.close()
	over(nil)
	empty(t, dir)
}

// TestNoFolder checks that ranks other than 0 report at once that the rendezvous directory is missing.
func TestNoFolder(t *testing.T) {
	_, err := Join(context.Background(), Config{Job: "job", Rank: 1, Size: 2, Dir: filepath.Join(t.TempDir(), "none")})
	if err == nil || !strings.Contains(err.Error(), "hint") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestKilledJoining kills rank 0 at any point of joining: the next sweep removes what it leaves, which does not interfere before.
func TestKilledJoining(t *testing.T) {
	dir := meetingPlace(t)
	for range 12 {
		p := start(t, "job", "join", 0, 2, envDir+"="+dir)
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		p.Process.Kill()
		p.wait(t, 30*time.Second)
	}
	joinAll(t, []Config{{Job: "job", Dir: dir}, {Job: "job", Dir: dir}})
	empty(t, dir)

	p := start(t, "job", "join", 0, 2, envDir+"="+dir)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if names, _ := filepath.Glob(dir + "/*/job"); len(names) > 0 {
			break
		}
	}
	Sweep(dir)
	if names, _ := filepath.Glob(dir + "/*/job"); len(names) == 0 {
		t.Error("the file of a living rank 0 was removed")
	}
	p.Process.Kill()
	p.wait(t, 30*time.Second)
	Sweep(dir)
	empty(t, dir)
}

// TestManyMeet has several jobs meet at once, so that empty folders are removed while others are about to use them.
func TestManyMeet(t *testing.T) {
	dir := meetingPlace(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for job := range 8 {
		for rank := range 2 {
			wg.Go(func() {
				for round := range 5 {
					c, err := Join(ctx, Config{Job: fmt.Sprintf("%d-%d", job, round), Rank: rank, Size: 2, Dir: dir})
					if err != nil {
						t.Errorf("job %d rank %d: %v", job, rank, err)
						return
					}
					c.Close()
				}
			})
		}
	}
	wg.Wait()
	empty(t, dir)
}

// FuzzRendezvous has a rank find arbitrary bytes instead of rank 0's file. It may refuse them, or attach if everything that it touches later exists.
func FuzzRendezvous(f *testing.F) {
	good := make([]byte, pageBytes)
	binary.NativeEndian.PutUint64(good, magic)
	binary.NativeEndian.PutUint32(good[8:], version)
	binary.NativeEndian.PutUint32(good[12:], 2)
	f.Add([]byte(nil), int64(0), 1, 2)
	f.Add(good[:100], int64(100), 1, 2)
	f.Add(good, layoutOf(2).rings, 1, 2)
	f.Add(good, layoutOf(2).rings-1, 1, 2)
	f.Add(good, layoutOf(3).end, 2, 3)
	f.Fuzz(func(t *testing.T, content []byte, size int64, rank, ranks int) {
		if size < 0 || size > 64<<20 || len(content) > 1<<20 {
			return
		}
		dir := meetingPlace(t)
		path := filepath.Join(ourFolder(t, dir), "job")
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer closeFD(fd)
		if _, err := unix.Pwrite(fd, content, 0); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(unix.Ftruncate(fd, size), lock(fd, 0)); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Job: "job", Rank: rank, Size: ranks, Dir: dir}
		if cfg.fill() != nil {
			return
		}
		d, err := openFolder(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		d.owner(cfg.Job) // what another rank 0 looks at
		others(ranks, fd)
		got, err := tryAttach(cfg)
		if err != nil {
			return
		}
		defer closeFD(got)
		if heap := openHeap(got); heap >= 0 && heap != got {
			closeFD(heap)
		}
		v := make([]byte, layoutOf(ranks).rings) // all that may be touched is there
		if n, err := unix.Pread(got, v, 0); err != nil || n != len(v) {
			t.Errorf("a file of %d bytes is taken for one of %d ranks", n, ranks)
		}
	})
}
