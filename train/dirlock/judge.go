package dirlock

import (
	"errors"
	"io/fs"
	"time"
)

type verdict int

const (
	none  verdict = iota // the file is gone or was replaced: look again
	alive                // the owner is alive
	dead                 // the owner is dead
)

// local reports whether the owner's process number is meaningful to this process.
func (o Owner) local() bool {
	return o.Boot != "" && o.Boot == boot() && o.Space != "" && o.Space == space()
}

// judge decides whether the owner of a lock file is alive.
func (t *taker) judge(path string) (verdict, Owner, error) {
	o, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, o, nil
	case errors.Is(err, errUnclear):
		return t.watch(path, o)
	case err != nil:
		return none, o, err
	}
	if o.local() {
		if gone(o.PID) {
			return dead, o, nil
		}
		if now := started(o.PID); now != "" && o.Start != "" {
			if now == o.Start {
				return alive, o, nil
			}
			return dead, o, nil // another process has its number now
		}
	}
	held, err := probe(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, o, nil
	case err == nil && held:
		return alive, o, nil
	case err == nil && o.Flock && o.Boot != "" && o.Boot == boot():
		return dead, o, nil // the kernel released the lock
	}
	return t.watch(path, o)
}

// probe reports whether any process holds a flock on the file.
func probe(path string) (held bool, err error) {
	f, err := openPlain(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return flock(f, false)
}

// watch waits for a sign of life: a changed beat.
func (t *taker) watch(path string, o Owner) (verdict, Owner, error) {
	if t.opts.Waiting != nil {
		t.opts.Waiting(o, t.opts.Patience)
	}
	for begin := time.Now(); time.Since(begin) < t.opts.Patience; {
		if err := t.sleep(min(time.Second, t.opts.Patience/20)); err != nil {
			return none, o, err
		}
		now, err := read(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return none, o, nil
		case err != nil && !errors.Is(err, errUnclear):
			continue // a failed read does not prove the owner dead: only the full wait does
		case now.Token != o.Token:
			return none, now, nil
		case now.Beat != o.Beat:
			return alive, now, nil
		}
	}
	// The last look must have seen the same owner, not failed.
	now, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, o, nil
	case err != nil && !errors.Is(err, errUnclear):
		return none, o, err
	case now.Token != o.Token:
		return none, now, nil
	case now.Beat != o.Beat:
		return alive, now, nil
	}
	return dead, o, nil
}
