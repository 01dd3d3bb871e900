package dirlock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gotrain/gotrain/train/foreign"
)

// taker acquires lock files, and the right to remove those of dead owners.
type taker struct {
	ctx  context.Context
	opts Options
}

// acquire makes the file at path this process's, after removing one whose owner is dead. If the owner is alive, the error is a *BusyError.
func (t *taker) acquire(path string) (*os.File, Owner, error) {
	for {
		f, me, err := create(path)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return f, me, err
		}
		v, o, err := t.judge(path)
		switch {
		case err != nil:
			return nil, o, err
		case v == alive:
			return nil, o, &BusyError{Dir: filepath.Dir(path), Owner: o}
		case v == dead:
			if err := t.remove(path, tokenOf(o)); errors.Is(err, errTaken) {
				// Another process is removing it, and is about to become the owner.
				if err := t.sleep(20 * time.Millisecond); err != nil {
					return nil, o, err
				}
			} else if err != nil {
				return nil, o, err
			}
		}
	}
}

// create makes a lock file for this process, complete from its first moment. The error is fs.ErrExist if there is one already.
func create(path string) (*os.File, Owner, error) {
	me, err := self()
	if err != nil {
		return nil, me, err
	}
	me.Beat = 1e9 // a constant number of digits, so that a reader never sees a number that was not written
	temp := path + "." + me.Token + tempSuffix
	f, err := newFile(temp, &me)
	if err != nil {
		return nil, me, err
	}
	defer os.Remove(temp)
	err = os.Link(temp, path)
	if err == nil || same(f, path) { // a network file system may have lost the reply
		return f, me, nil
	}
	f.Close()
	if !noLinks(err) {
		return nil, me, err
	}
	f, err = newFile(path, &me)
	return f, me, err
}

const tempSuffix = ".new"

// newFile writes a file that must not exist yet.
func newFile(path string, me *Owner) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	held, err := flock(f, true)
	me.Flock = err == nil && !held
	raw, err := me.encode()
	if err == nil {
		_, err = f.Write(raw)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, nil
}

// same reports whether path is the open file.
func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// noLinks reports whether the file system lacks hard links.
func noLinks(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EMLINK, errors.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// errTaken means that another process has the right to remove a lock file.
var errTaken = errors.New("another process is removing the lock file")

// remove removes the lock file at path if it still has the token. A second lock file, named after the token, decides which process may do so; hence
// no process removes a file that was created after it judged another one. A second file left by a dead process is removed in the same way.
func (t *taker) remove(path, token string) error {
	right := filepath.Join(filepath.Dir(path), Name+"."+token)
	f, _, err := t.acquire(right)
	var busy *BusyError
	if errors.As(err, &busy) {
		return errTaken
	}
	if err != nil {
		return err
	}
	defer func() {
		os.Remove(right)
		f.Close()
	}()
	o, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && !errors.Is(err, errUnclear):
		return err
	case tokenOf(o) != token:
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tokenOf is the token of an owner, or "" for nil.
func tokenOf(o Owner) string {
	if o.Token == "" {
		return strings.Repeat("0", 32)
	}
	return o.Token
}

func (t *taker) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.ctx.Done():
		return fmt.Errorf("stopped while waiting for its owner: %w", t.ctx.Err())
	}
}

// sweep removes files left by processes of this machine that died while taking or releasing. It must not fail a lock that is held.
func sweep(dir string, me Owner) {
	left, err := foreign.Glob(filepath.Join(dir, Name+".*"))
	if err != nil {
		return
	}
	for _, path := range left {
		if o, err := read(path); err == nil && o.Token != me.Token && o.local() && gone(o.PID) {
			os.Remove(path)
		}
	}
}
