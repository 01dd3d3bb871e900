package find

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
)

// shared returns what a rank of a job with two hosts gets for a file.
func shared(t *testing.T, path string, rank, restart int) meet.Place {
	t.Helper()
	id := launch.Identity{Rank: rank, World: 4, LocalWorld: 2, Nodes: 2, JobID: "j", Source: launch.SourceGotrain, Restart: restart}
	p, err := Where(id, launch.LookupIn([]string{"GOTRAIN_JOB_ID=j", "GOTRAIN_RENDEZVOUS=file://" + path}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// within waits no longer than a test may, for what takes no time.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestFileCarriesAddressAndToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	zero, one := shared(t, path, 0, 0), shared(t, path, 1, 0)
	if zero.Token == nil || one.Token != nil {
		t.Fatalf("rank 0 makes the token, the others get it: %q, %q", zero.Token, one.Token)
	}
	type found struct {
		addr  string
		token []byte
		err   error
	}
	came := make(chan found)
	go func() {
		a, tok, err := one.Lookup(within(t, 10*time.Second))
		came <- found{a, tok, err}
	}()
	time.Sleep(30 * time.Millisecond)
	if err := zero.Publish(t.Context(), "10.0.0.1:41823,[fe80::1]:41823", zero.Token); err != nil {
		t.Fatal(err)
	}
	f := <-came
	if f.err != nil || f.addr != "10.0.0.1:41823,[fe80::1]:41823" || string(f.token) != string(zero.Token) {
		t.Errorf("%+v", f)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	zero.Clear()
	list, _ := os.ReadDir(filepath.Dir(path))
	if len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
}

// The folder of this host is gone when the last rank 0 has gone, and one that wants to use it meanwhile makes it again.
func TestOwnFolderGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "own")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				if _, err := privateFolder(dir); err != nil {
					t.Error(err)
				}
				d := &drop{path: filepath.Join(dir, fmt.Sprint("gotrain-", i)), job: "j", own: true}
				if err := d.publish(t.Context(), "h:1", nil); err != nil {
					t.Error(err)
				}
				if n, err := d.look(); err != nil || n.addr != "h:1" {
					t.Error(n, err)
				}
				d.clear()
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
}

// A token that the user has given to all ranks is not written down once more.
func TestGivenTokenStaysAtHome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	lookup := launch.LookupIn([]string{"GOTRAIN_JOB_ID=j", "GOTRAIN_RENDEZVOUS=file://" + path, "GOTRAIN_JOB_TOKEN=a-secret-of-the-user"})
	place := func(rank int) meet.Place {
		p, err := Where(launch.Identity{Rank: rank, World: 2, LocalWorld: 1, Nodes: 2, JobID: "j"}, lookup)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := place(0).Publish(t.Context(), "h:1", []byte("a-secret-of-the-user")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("%q, %v", text, err)
	}
	if addr, token, err := place(1).Lookup(within(t, 5*time.Second)); addr != "h:1" || string(token) != "a-secret-of-the-user" || err != nil {
		t.Errorf("%q %q %v", addr, token, err)
	}
}

// A file of an earlier start of the job, or of another job, is not believed; one of a later start ends this one.
func TestStaleFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	old, now := shared(t, path, 0, 1), shared(t, path, 1, 2)
	if err := old.Publish(t.Context(), "10.0.0.9:1", []byte("old")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := now.Lookup(within(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "generation 1") {
		t.Errorf("a file of an older generation: %v", err)
	}
	fresh := shared(t, path, 0, 2)
	if err := fresh.Publish(t.Context(), "10.0.0.1:1", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if addr, token, err := now.Lookup(within(t, 5*time.Second)); addr != "10.0.0.1:1" || string(token) != "new" || err != nil {
		t.Errorf("%s %s %v", addr, token, err)
	}
	old.Clear() // the file is no longer its own
	if _, _, err := shared(t, path, 2, 2).Lookup(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	if _, _, err := shared(t, path, 2, 1).Lookup(within(t, 5*time.Second)); err == nil || !strings.Contains(err.Error(), "generation 1 of job j is over") {
		t.Errorf("a rank of an older generation: %v", err)
	}
	if err := old.Publish(t.Context(), "10.0.0.9:1", []byte("old")); err == nil || launch.ExitCode(err) != launch.ExitUnavailable {
		t.Errorf("an older rank 0 replaced a newer one: %v", err)
	}
	other := note{job: "other", addr: "h:1"}.format()
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := now.Lookup(within(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "job other") {
		t.Errorf("a file of another job: %v", err)
	}
}

// If nobody answers at an address, the second call waits for another one, and not for ever.
func TestLookupAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	zero, one := shared(t, path, 0, 0), shared(t, path, 1, 0)
	if err := zero.Publish(t.Context(), "10.0.0.1:1", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if addr, _, err := one.Lookup(within(t, 10*time.Second)); addr != "10.0.0.1:1" || err != nil {
			t.Fatalf("%s, %v", addr, err)
		}
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		zero.Publish(context.Background(), "10.0.0.1:2", nil)
	}()
	if addr, _, err := one.Lookup(within(t, 10*time.Second)); addr != "10.0.0.1:2" || err != nil {
		t.Errorf("%s, %v", addr, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	good := note{job: "j", addr: "h:1", token: "t"}.format()
	for name, plant := range map[string]func(path string) error{
		"readable":      func(p string) error { return os.WriteFile(p, good, 0o644) },
		"a link":        func(p string) error { return errors.Join(os.WriteFile(p+"2", good, 0o600), os.Symlink(p+"2", p)) },
		"a pipe":        func(p string) error { return unix.Mkfifo(p, 0o600) },
		"a folder":      func(p string) error { return os.Mkdir(p+"x", 0o700) },
		"no address":    func(p string) error { return os.WriteFile(p, note{job: "j", addr: "nonsense"}.format(), 0o600) },
		"something":     func(p string) error { return os.WriteFile(p, []byte("hello\n"), 0o600) },
		"cut off":       func(p string) error { return os.WriteFile(p, good[:len(good)-6], 0o600) },
		"other's owner": func(p string) error { return errors.Join(os.WriteFile(p, good, 0o600), os.Chown(p, 12345, -1)) },
	} {
		if name == "a folder" || name == "other's owner" && os.Geteuid() != 0 {
			continue // a folder is where the file goes; only root can give files away
		}
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := plant(path); err != nil {
			t.Fatal(err)
		}
		one := shared(t, path, 1, 0)
		if addr, _, err := one.Lookup(within(t, 5*time.Second)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %q, %v", name, addr, err)
		}
	}
}

func TestPublishNeedsARoomToWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone", "x")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	zero := shared(t, path, 0, 0)
	os.Remove(filepath.Dir(path))
	if err := zero.Publish(t.Context(), "h:1", nil); err == nil || launch.ExitCode(err) != launch.ExitStorage {
		t.Errorf("%v", err)
	}
}

func FuzzNote(f *testing.F) {
	f.Add(note{job: "j", generation: 3, addr: "[::1]:5,h:6", token: "t"}.format())
	f.Add(note{job: "", addr: "h:1"}.format())
	f.Add([]byte("gotrain rendezvous 1\njob a\njob b\naddress h:1\nend\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parseNote(b)
		if err == nil && string(n.format()) != string(b) {
			t.Fatalf("%q was read as %+v", b, n)
		}
	})
}
