package usercache

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Place is a private directory of the user. Make creates it if it is missing; Find does not.
type Place struct {
	Base string   // exists, or may be created; others may write to it (/tmp)
	Own  []string // directories below it, each private to the user
	Err  error    // why this place is not available
}

// Places lists where a folder of this name may be, the preferred place first.
func Places(name string) []Place {
	cache, err := os.UserCacheDir()
	return []Place{
		{Base: cache, Own: []string{"gotrain", name}, Err: err},
		{Base: os.TempDir(), Own: []string{"gotrain-" + strconv.Itoa(os.Geteuid()), name}},
	}
}

// Make creates the directory, and rejects one that others can write to.
func (p Place) Make() (string, error) {
	if p.Err != nil {
		return "", p.Err
	}
	if err := os.MkdirAll(p.Base, 0o700); err != nil {
		return "", err
	}
	return p.walk(func(dir string) error {
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return err
		}
		return nil
	}, false)
}

// Find returns the directory if it exists, for reading: it may be one that cannot be written, or root's, such as in the image of a container. Others must not
// be able to write to it.
func (p Place) Find() (string, error) {
	if p.Err != nil {
		return "", p.Err
	}
	return p.walk(func(string) error { return nil }, true)
}

// walk goes down to the directory and checks each on the way; enter may make it.
func (p Place) walk(enter func(dir string) error, read bool) (string, error) {
	dir := p.Base
	for _, name := range p.Own {
		dir = filepath.Join(dir, name)
		if err := enter(dir); err != nil {
			return "", err
		}
		st, err := os.Lstat(dir)
		if err != nil {
			return "", err
		}
		if !st.IsDir() {
			return "", fmt.Errorf("%s is not a directory", dir)
		}
		if err := private(st, read); err != nil {
			return "", fmt.Errorf("%s %w", dir, err)
		}
	}
	return dir, nil
}
