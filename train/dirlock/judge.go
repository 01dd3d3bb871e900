package dirlock

import (
	"errors"
	"io/fs"
	"time"
)

type verdict int

const (
	none  verdict = iota // there is no file any more, or it is another one by now: look again
	alive                // the owner lives
	dead                 // it does not
)

// local says whether the owner's process number means something to this process.
func (o Owner) local() bool {
	return o.Boot != "" && o.Boot == boot() && o.Space != "" && o.Space == space()
}

// judge says whether the owner of a lock file is alive.
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
			return dead, o, nil // another process has its number
		}
	}
	held, err := probe(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, o, nil
	case err == nil && held:
		return alive, o, nil
	case err == nil && o.Flock && o.Boot != "" && o.Boot == boot():
		return dead, o, nil // the kernel that gave the lock has taken it back
	}
	return t.watch(path, o)
}

// probe says whether somebody holds a flock on the file.
func probe(path string) (held bool, err error) {
	f, err := openPlain(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return flock(f, false)
}

// watch waits for a sign of life: a beat that changes.
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
			continue // not readable just now is no sign of death: the wait is what counts
		case now.Token != o.Token:
			return none, now, nil
		case now.Beat != o.Beat:
			return alive, now, nil
		}
	}
	// The last look must be one that saw the same owner, not one that failed.
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
