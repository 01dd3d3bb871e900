package dirlock

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var ctx = context.Background()

// TestMain is also the program of another process, which takes a folder and holds it until killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DIRLOCK_TEST_HOLD"); dir != "" {
		_, err := Take(ctx, dir, Options{})
		if err != nil {
			os.Stdout.WriteString(strings.ReplaceAll(err.Error(), "\n", " ") + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

// other starts a process that takes dir, and returns its answer.
func other(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), "DIRLOCK_TEST_HOLD="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return c, strings.TrimSpace(line)
}

// never is a Waiting function for cases in which Take must not wait.
func never(t *testing.T) Options {
	return Options{Waiting: func(o Owner, _ time.Duration) { t.Errorf("waited for %v", o) }}
}

func write(t *testing.T, path string, o Owner) {
	t.Helper()
	raw, err := o.encode()
	if err != nil {
		t.Fatal(err)
	}
	// By a rename, so that an existing file becomes a different file.
	if err := errors.Join(os.WriteFile(path+"~", raw, 0o666), os.Rename(path+"~", path)); err != nil {
		t.Fatal(err)
	}
}

// taken checks that the folder is ours, and that it contains only the lock.
func taken(t *testing.T, l *Lock, err error, dir string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	only(t, dir, Name)
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	only(t, dir)
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %v, want %v", names, want)
	}
}

func TestAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	c, answer := other(t, dir)
	if answer != "held" {
		t.Fatal(answer)
	}
	_, err := Take(ctx, dir, never(t))
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Owner.PID != c.Process.Pid || busy.ExitCode() != 73 {
		t.Fatalf("got %v", err)
	}
	if _, answer := other(t, dir); !strings.Contains(answer, "in use by another run, process ") || !strings.Contains(answer, "hint: ") {
		t.Error(answer)
	}
	// A frozen owner on the same machine is alive.
	c.Process.Signal(syscall.SIGSTOP)
	if _, err := Take(ctx, dir, never(t)); !errors.As(err, &busy) {
		t.Errorf("a stopped process lost its folder: %v", err)
	}
	// Killed and not yet waited for: a zombie.
	c.Process.Kill()
	for !gone(c.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	l, err := Take(ctx, dir, never(t))
	taken(t, l, err, dir)
}

// The lock of a dead owner is taken at once if this kernel can tell.
func TestDeadAtOnce(t *testing.T) {
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Owner){
		"no such process": func(o *Owner) { o.PID = 1 << 30 },
		"number reused":   func(o *Owner) { o.Start = "1" },
		"other container": func(o *Owner) { o.Space, o.Flock = "pid:[1]", true },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := me
			change(&o)
			write(t, filepath.Join(dir, Name), o)
			l, err := Take(ctx, dir, never(t))
			taken(t, l, err, dir)
		})
	}
}

// A live process in another container holds the flock.
func TestAliveByFlock(t *testing.T) {
	dir := t.TempDir()
	l, err := Take(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	l.mu.Lock()
	o := l.owner
	o.Space, o.Boot, o.Host = "pid:[1]", "elsewhere", "elsewhere"
	raw, err := o.encode()
	if err == nil {
		_, err = l.file.WriteAt(raw, 0)
	}
	l.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Take(ctx, dir, never(t))
	var busy *BusyError
	if !errors.As(err, &busy) || strings.Contains(err.Error(), "kill ") {
		t.Errorf("got %v", err)
	}
}

// An owner on another host is dead if its beat stands still, and alive if it changes.
func TestAnotherHost(t *testing.T) {
	remote := Owner{Token: strings.Repeat("a", 32), Host: "elsewhere", PID: 1, Boot: "another", Beat: 5}
	asked := 0
	o := Options{Patience: 100 * time.Millisecond, Waiting: func(Owner, time.Duration) { asked++ }}
	t.Run("dead", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, Name), remote)
		l, err := Take(ctx, dir, o)
		taken(t, l, err, dir)
	})
	t.Run("alive", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, Name), remote)
		o := o
		o.Patience = time.Hour
		o.Waiting = func(Owner, time.Duration) { // from here on Take watches
			asked++
			next := remote
			next.Beat++
			write(t, filepath.Join(dir, Name), next)
		}
		_, err := Take(ctx, dir, o)
		var busy *BusyError
		if !errors.As(err, &busy) || busy.Owner.Host != "elsewhere" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("torn", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, Name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := Take(ctx, dir, o)
		taken(t, l, err, dir)
	})
	t.Run("stopped", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, Name), remote)
		ctx, cancel := context.WithCancel(ctx)
		o := Options{Waiting: func(Owner, time.Duration) { asked++; cancel() }}
		if _, err := Take(ctx, dir, o); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		only(t, dir, Name)
	})
	if asked != 4 {
		t.Errorf("asked to wait %d times, want 4", asked)
	}
}

// Of many that take over from a dead owner, exactly one wins, whatever a crash left half done before.
func TestTakeOverRace(t *testing.T) {
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	me.PID = 1 << 30
	second := me
	second.Token = strings.Repeat("b", 32)
	for round := range 100 {
		dir := t.TempDir()
		write(t, filepath.Join(dir, Name), me)
		if round%2 == 1 { // a process died
			write(t, filepath.Join(dir, Name+"."+me.Token), second)
		}
		var wg sync.WaitGroup
		locks := make([]*Lock, 6)
		for i := range locks {
			wg.Go(func() {
				l, err := Take(ctx, dir, Options{})
				var busy *BusyError
				if err != nil && !errors.As(err, &busy) {
					t.Error(err)
				}
				locks[i] = l
			})
		}
		wg.Wait()
		won := 0
		for _, l := range locks {
			if l == nil {
				continue
			}
			won++
			if err := errors.Join(l.Check(), l.Release()); err != nil {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d owners", round, won)
		}
		only(t, dir)
	}
}

// An owner whose lock was taken over learns of it, and leaves the new lock alone.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	told := make(chan error, 1)
	l, err := Take(ctx, dir, Options{Every: time.Millisecond, Lost: func(err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	thief := Owner{Token: strings.Repeat("c", 32), Host: "elsewhere", PID: 7}
	write(t, filepath.Join(dir, Name), thief)
	if err := <-told; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), `process 7 on "elsewhere"`) {
		t.Error(err)
	}
	if err := l.Check(); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if o, err := read(filepath.Join(dir, Name)); err != nil || o.Token != thief.Token {
		t.Errorf("the other's lock is %v, %v", o, err)
	}
	only(t, dir, Name)
}

// The owner's beat changes, so that other hosts see that it is alive.
func TestBeat(t *testing.T) {
	dir := t.TempDir()
	l, err := Take(ctx, dir, Options{Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	first, err := read(filepath.Join(dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	for {
		o, err := read(filepath.Join(dir, Name))
		if err == nil && o.Beat != first.Beat && o.Token == first.Token {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestNotALock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Skip(err)
	}
	if _, err := Take(ctx, dir, never(t)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := Take(ctx, path, never(t)); err == nil {
		t.Error("a folder that is none was taken")
	}
}
