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
	maxPage  = 4 << 20          // bytes; a network has a hundred answers of 200 bytes
	lockWait = 20 * time.Second // longer than anything is measured
)

// shelf is the folder with the pages.
type shelf struct{ dir string }

// openShelf takes the first place that can be written.
func openShelf(places []usercache.Place) (shelf, error) {
	var failed []error
	for _, p := range places {
		dir, err := p.Make()
		if err == nil {
			var probe *os.File
			if probe, err = os.CreateTemp(dir, ".probe-"); err == nil { // a read-only file system shows only here
				err = errors.Join(probe.Close(), os.Remove(probe.Name()))
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
	f, err := os.Open(s.path(machine))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", f.Name()))
	}
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
func (s shelf) add(machine string, more map[string]answer, list []Contest) (map[string]answer, error) {
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

// lock waits until no other process measures. It gives up after lockWait, since a lock only saves work: whoever stores first decides. The caller calls
// the result.
func (s shelf) lock(ctx context.Context, machine string) (release func(), err error) {
	f, err := os.OpenFile(s.path(machine)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
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
