package dirlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Name is the name of the lock file in the folder.
const Name = "gotrain.lock"

// Options are the options of Take.
type Options struct {
	Every    time.Duration // between beats; 5 s
	Patience time.Duration // how long an owner on another host may be silent; 60 s
	// Waiting is called once if Take has to watch for a sign of life, which takes up to Patience.
	Waiting func(o Owner, patience time.Duration)
	// Lost is called once, on a goroutine of the lock, when the lock turns out to be lost.
	Lost func(error)
	Hint string // extra text for the hint of a BusyError
}

// Lock is the ownership of a folder. Its methods may be called from any goroutine.
type Lock struct {
	path string
	opts Options
	file *os.File

	mu    sync.Mutex
	owner Owner
	done  bool // released

	quit    chan struct{}
	stopped chan struct{}
}

// Take makes this process the owner of a folder, and creates the folder if missing. If another process owns it, the error is a *BusyError. If only
// time can tell whether the owner is alive, Take waits, up to Options.Patience or the end of ctx.
func Take(ctx context.Context, dir string, o Options) (*Lock, error) {
	o.Every, o.Patience = cmp.Or(o.Every, 5*time.Second), cmp.Or(o.Patience, time.Minute)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, Name)
	t := &taker{ctx: ctx, opts: o}
	f, me, err := t.acquire(path)
	if err != nil {
		var busy *BusyError
		if errors.As(err, &busy) {
			busy.Dir, busy.Hint = dir, o.Hint
			return nil, busy
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	sweep(dir, me)
	l := &Lock{path: path, opts: o, file: f, owner: me, quit: make(chan struct{}), stopped: make(chan struct{})}
	go l.beat()
	return l, nil
}

// Covers reports whether dir is the owned folder, perhaps under another name.
func (l *Lock) Covers(dir string) bool {
	a, err := os.Stat(filepath.Dir(l.path))
	if err != nil {
		return false
	}
	b, err := os.Stat(dir)
	return err == nil && os.SameFile(a, b)
}

// Check reports whether the lock is still held: nil, an error that is ErrLost, or another error if the file cannot be read at the moment.
func (l *Lock) Check() error {
	l.mu.Lock()
	token := l.owner.Token
	l.mu.Unlock()
	var o Owner
	var err error
	for range 5 {
		if o, err = read(l.path); err == nil || errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(10 * time.Millisecond) // a stale handle, or a half-written beat
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &lostError{path: l.path}
	case err != nil:
		return fmt.Errorf("cannot tell whether this run still owns the folder: %w", err)
	case o.Token != token:
		return &lostError{path: l.path, by: &o}
	}
	return nil
}

// beat changes the file periodically, until Release or a loss.
func (l *Lock) beat() {
	defer close(l.stopped)
	tick := time.NewTicker(l.opts.Every)
	defer tick.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-tick.C:
		}
		if err := l.Check(); errors.Is(err, ErrLost) {
			if l.opts.Lost != nil {
				l.opts.Lost(err)
			}
			return
		}
		l.mu.Lock()
		l.owner.Beat++
		raw, err := l.owner.encode()
		if err == nil {
			// An error is not fatal yet: if it persists, others may take over, and Check reports that. After a takeover this writes to a file that no longer
			// has a name.
			_, _ = l.file.WriteAt(raw, 0)
		}
		l.mu.Unlock()
	}
}

// Release gives up the folder. Release is idempotent.
func (l *Lock) Release() error {
	l.mu.Lock()
	again := l.done
	l.done = true
	token := l.owner.Token
	l.mu.Unlock()
	if again {
		return nil
	}
	close(l.quit)
	<-l.stopped
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	t := &taker{ctx: ctx, opts: l.opts}
	err := t.remove(l.path, token)
	if errors.Is(err, errTaken) || errors.Is(err, context.DeadlineExceeded) {
		err = nil // another process is taking it over, so it owns the folder now
	}
	return errors.Join(err, l.file.Close())
}
