package unpack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// place is a directory of the user's own for unpacked files. It is made where it is missing.
type place struct {
	base string   // exists already, or may be made; others may write to it (/tmp)
	own  []string // directories below it, each private to the user
	err  error    // why there is no such place
}

// places are where files may be unpacked, the preferred one first.
func places() []place {
	cache, err := os.UserCacheDir()
	return []place{
		{base: cache, own: []string{"gotrain", "data"}, err: err},
		{base: os.TempDir(), own: []string{"gotrain-" + strconv.Itoa(os.Geteuid()), "data"}},
	}
}

// make creates the directory, and refuses one that others could write to.
func (p place) make() (string, error) {
	if p.err != nil {
		return "", p.err
	}
	if err := os.MkdirAll(p.base, 0o700); err != nil {
		return "", err
	}
	dir := p.base
	for _, name := range p.own {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return "", err
		}
		st, err := os.Lstat(dir)
		if err != nil {
			return "", err
		}
		if !st.IsDir() {
			return "", fmt.Errorf("%s is not a directory", dir)
		}
		if err := private(st); err != nil {
			return "", fmt.Errorf("%s %w", dir, err)
		}
	}
	return dir, nil
}
