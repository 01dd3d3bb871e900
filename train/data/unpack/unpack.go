package unpack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/train/foreign"
)

// Dir returns a folder on disk that holds exactly these files. name becomes part of its name.
func Dir(name string, files fs.FS) (string, error) {
	return within(usercache.Places("data"), name, files)
}

// within unpacks below the first usable place.
func within(places []usercache.Place, name string, files fs.FS) (string, error) {
	sum, err := hash(files)
	if err != nil {
		return "", err
	}
	name += "-" + sum
	var failed []error
	for _, p := range places {
		dir, made, err := below(p, name, files)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if made && len(failed) > 0 {
			slog.Warn("unpacking bundled data to the directory for temporary files", "dir", dir, "reason", errors.Join(failed...))
		}
		return dir, nil
	}
	return "", fmt.Errorf("unpack: bundled data cannot be unpacked to disk: %w\nhint: set XDG_CACHE_HOME to a directory that you own", errors.Join(failed...))
}

// below unpacks into the folder name of a place, and reports whether it had to.
func below(p usercache.Place, name string, files fs.FS) (dir string, made bool, err error) {
	root, err := p.Make()
	if err != nil {
		return "", false, err
	}
	dir = filepath.Join(root, name)
	// Two attempts suffice unless the folder keeps being damaged: another process may have put its own folder there in between, and that is checked too.
	for range 3 {
		switch err = same(dir, files); {
		case err == nil:
			return dir, made, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDiffers):
			return "", false, err
		}
		if made, err = put(root, dir, files); err != nil {
			return "", false, err
		}
	}
	return "", false, fmt.Errorf("%s keeps changing while it is being written", dir)
}

// put writes the folder next to its final place and renames it. It returns false if another process was faster. A folder that differs is moved
// away, but never a valid one: another process may be using it.
func put(root, dir string, files fs.FS) (bool, error) {
	usercache.Sweep(root, ".new-")
	tmp, err := os.MkdirTemp(root, ".new-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	fresh, old := filepath.Join(tmp, "fresh"), filepath.Join(tmp, "old")
	if err := os.CopyFS(fresh, files); err != nil {
		return false, err
	}
	if errors.Is(same(dir, files), errDiffers) {
		if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	if err := os.Rename(fresh, dir); err != nil { // rename never replaces a non-empty folder
		if _, there := os.Lstat(dir); there == nil {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

var errDiffers = errors.New("differs from the embedded copy")

// same returns nil if dir holds exactly these files.
func same(dir string, files fs.FS) error {
	if st, err := os.Lstat(dir); err != nil {
		return err
	} else if !st.IsDir() {
		return fmt.Errorf("%s: %w", dir, errDiffers)
	}
	want := map[string]bool{}
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		want[name] = true
		at := filepath.Join(dir, filepath.FromSlash(name))
		st, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) || err == nil && st.Mode().Type() != e.Type() {
			return fmt.Errorf("%s: %w", at, errDiffers)
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		has := []byte(nil)
		if st.Size() == int64(len(text)) {
			if has, err = foreign.ReadFile(at, st.Size()); err != nil {
				return err
			}
		}
		if !bytes.Equal(has, text) {
			return fmt.Errorf("%s: %w", at, errDiffers)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err == nil && !want[filepath.ToSlash(name)] {
			err = fmt.Errorf("%s: %w", at, errDiffers)
		}
		return err
	})
}

// hash is a short hash of the names and contents of all files.
func hash(files fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		fmt.Fprintf(h, "%x %s\n", sum, name)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("unpack: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}
