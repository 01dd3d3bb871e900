package unpack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// place is a private directory of the user for unpacked files. It is created if missing.
type place struct {
	base string   // exists, or may be created; others may write to it (/tmp)
	own  []string // directories below it, each private to the user
	err  error    // why this place is not available
}

// places lists where files may be unpacked, the preferred place first.
func places() []place {
	cache, err := os.UserCacheDir()
	return []place{
		{base: cache, own: []string{"gotrain", "data"}, err: err},
		{base: os.TempDir(), own: []string{"gotrain-" + strconv.Itoa(os.Geteuid()), "data"}},
	}
}

// make creates the directory, and rejects one that others can write to.
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
