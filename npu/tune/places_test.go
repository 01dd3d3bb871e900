//go:build linux

package tune

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/npu"
)

// asNobody makes file accesses of this goroutine those of a user without rights. For others than root it does nothing.
func asNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	if err := errors.Join(unix.Setfsgid(65534), unix.Setfsuid(65534)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Setfsuid(0), unix.Setfsgid(0)); err != nil {
			t.Fatal(err)
		}
		runtime.UnlockOSThread()
	})
}

// What is kept in a folder that can be read but not written is used.
func TestReadOnly(t *testing.T) {
	dev, _ := open(t, "a")
	var n atomic.Int64
	first := places(t)
	choose(t, Tuner{Places: first, Time: faked(npu.Winograd4, &n)}, dev, conv(8, 4, 6))
	dir, err := first[0].Find()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(filepath.Dir(first[0].Base), 0o755), os.Chmod(shelf{dir}.path("a"), 0o444), os.Chmod(dir, 0o555),
		os.Chmod(filepath.Dir(dir), 0o555)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	defer os.Chmod(filepath.Dir(dir), 0o755)
	asNobody(t)
	tu := Tuner{Places: first, Time: faked(npu.Direct, &n)}
	c, rep := choose(t, tu, dev, conv(8, 4, 6))
	if len(c.Algorithms) != 3 || c.Algorithm(conv(8, 4, 6)[0]) != npu.Winograd4 || rep.Lost != nil || rep.Measured > 0 {
		t.Errorf("read-only: %v %+v", c, rep)
	}
	both := append(conv(8, 4, 6), conv(8, 4, 9)...)
	c, rep = choose(t, tu, dev, both) // no place to keep what is measured
	if c.Algorithm(both[0]) != npu.Winograd4 || len(c.Algorithms) != 3 || rep.Lost == nil || rep.Measured > 0 {
		t.Errorf("partly known: %v %+v", c, rep)
	}
}

// A disk that is full is noticed before anything is measured, or when the result is to be kept; either way nothing depends on the measurement.
func TestFullDisk(t *testing.T) {
	if os.Getenv("TUNE_TEST_CHILD") == "" { // the limit below would also hit what the test's process writes otherwise
		cmd := exec.Command(os.Args[0], "-test.run", "^TestFullDisk$")
		cmd.Env = append(os.Environ(), "TUNE_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	full := func(n uint64) { // a limit on the size of files has the effect of a full disk: a write fails
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
	}
	defer full(was.Cur)
	dev, _ := open(t, "a")
	var n atomic.Int64
	where := places(t)
	full(200)
	c, rep := choose(t, Tuner{Places: where, Time: faked(npu.Winograd4, &n)}, dev, conv(8, 4, 6))
	if len(c.Algorithms) > 0 || n.Load() > 0 || !errors.Is(rep.Lost, syscall.EFBIG) {
		t.Errorf("full at the start: %v %+v, measured %d", c, rep, n.Load())
	}
	full(was.Cur)
	measure := faked(npu.Winograd4, &n)
	c, rep = choose(t, Tuner{Places: where, Time: func(ctx context.Context, c Contest) ([]Timing, error) {
		full(200)
		return measure(ctx, c)
	}}, dev, conv(8, 4, 6))
	if len(c.Algorithms) > 0 || n.Load() != 3 || !errors.Is(rep.Lost, syscall.EFBIG) {
		t.Errorf("full at the end: %v %+v, measured %d", c, rep, n.Load())
	}
	full(was.Cur)
	dir, err := where[0].Find()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if c, rep := choose(t, Tuner{Places: where, Time: measure}, dev, conv(8, 4, 6)); len(c.Algorithms) != 3 || rep.Lost != nil || rep.Damaged != nil {
		t.Errorf("with room again: %v %+v", c, rep)
	}
}

// The folder of another user is neither written nor read, that of root is read.
func TestTwoUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder to another user")
	}
	dev, _ := open(t, "a")
	var n atomic.Int64
	theirs, mine := places(t), places(t)
	choose(t, Tuner{Places: theirs, Time: faked(npu.Winograd4, &n)}, dev, conv(8, 4, 6))
	dir, err := theirs[0].Find()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(dir, 1, 1), os.Chown(filepath.Dir(dir), 1, 1)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	tu := Tuner{Places: []usercache.Place{theirs[0], mine[0]}, Time: faked(npu.Direct, &n)}
	if c, rep := choose(t, tu, dev, conv(8, 4, 6)); rep.Measured != 3 || rep.Lost != nil || c.Algorithm(conv(8, 4, 6)[0]) != npu.Direct {
		t.Errorf("%v %+v", c, rep)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
		t.Errorf("the other user's folder: %v, before %v, %v", after, before, err)
	}
}
