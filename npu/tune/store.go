package tune

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/gotrain/gotrain/internal/usercache"
)

// answer is a decision with the times behind it.
type answer struct {
	Choice string           `json:"choice"`
	Nanos  map[string]int64 `json:"ns,omitempty"` // by name of the contestant, for people who want to know
}

// page is the content of a file: what is known of one machine.
type page struct {
	Version int               `json:"version"`
	Machine string            `json:"machine"`
	Answers map[string]answer `json:"answers"`
}

const (
	maxPage  = 4 << 20          // bytes; a network has a hundred answers of 300 bytes
	room     = 64 << 10         // bytes that must be free before anything is measured
	lockWait = 20 * time.Second // longer than anything is measured
)

// Names of locks of a folder. Only one process measures at a time, whatever its number of threads, since two would slow each other down; and only one stores.
const (
	measuring = "measuring"
	storing   = "storing"
)

// shelf is the folder with the pages.
type shelf struct{ dir string }

// openShelf takes the first place that can be written and has room.
func openShelf(places []usercache.Place) (shelf, error) {
	var failed []error
	for _, p := range places {
		dir, err := p.Make()
		if err == nil {
			usercache.Sweep(dir, ".probe-", ".new-")
			var probe *os.File
			if probe, err = os.CreateTemp(dir, ".probe-"); err == nil { // a read-only file system and a full one show only here
				_, err = probe.Write(make([]byte, room))
				err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
			}
		}
		if err == nil {
			return shelf{dir}, nil
		}
		failed = append(failed, err)
	}
	return shelf{}, errors.Join(failed...)
}

// path is the file of a machine.
func (s shelf) path(machine string) string {
	sum := sha256.Sum256(fmt.Append(nil, Version, machine))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:8])+".json")
}

// read returns what is known of a machine; nothing is known if there is no file. A file that cannot be used is an error.
func (s shelf) read(machine string) (map[string]answer, error) {
	file := s.path(machine)
	st, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !st.Mode().IsRegular() { // a pipe would never open
		err = fmt.Errorf("%s is not a regular file", file)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPage))
	if err != nil {
		return nil, err
	}
	var p page
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if p.Version != Version || p.Machine != machine {
		return nil, fmt.Errorf("%s is of another machine or version", f.Name())
	}
	return p.Answers, nil
}

// add keeps more answers, to the questions of a list. Those that are there stay, since others may use them already, unless they name what no longer exists. It
// returns all.
func (s shelf) add(ctx context.Context, machine string, more map[string]answer, list []Contest) (map[string]answer, error) {
	release, err := s.lock(ctx, storing)
	if err != nil {
		return nil, err
	}
	defer release()
	all := maps.Clone(more)
	if old, err := s.read(machine); err == nil { // a damaged one is replaced
		for _, c := range missing(list, old) {
			delete(old, c.Key)
		}
		maps.Copy(all, old)
	}
	raw, err := json.MarshalIndent(page{Version, machine, all}, "", " ")
	if err != nil {
		return nil, err
	}
	tmp, err := os.CreateTemp(s.dir, ".new-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.Write(raw); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return nil, err
	}
	return all, os.Rename(tmp.Name(), s.path(machine))
}

// lock waits until no other process has this lock. It gives up after lockWait: a process that hangs must not stop all others, and whoever stores first
// decides. The caller calls the result.
func (s shelf) lock(ctx context.Context, name string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockWait); !tryLock(f) && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() { f.Close() }, nil
}
