package llamafile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/train/foreign"
)

// place is a destination that appears only when complete.
type place struct {
	dest   string
	temp   string // next to dest: a folder, or the file itself
	single bool
	force  bool
	files  []string
	bytes  int64
}

// newPlace makes a temporary folder, or chooses the name of a temporary file.
func newPlace(dest string, single, force bool) (*place, error) {
	dest, err := filepath.Abs(dest)
	if err != nil {
		return nil, err
	}
	if err := vacant(dest, single, force); err != nil {
		return nil, err
	}
	parent := filepath.Dir(dest)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dest)+".tmp-*")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(temp, 0o755); err != nil { // temporary folders are private
		return nil, errors.Join(err, os.Remove(temp))
	}
	return &place{dest: dest, temp: temp, single: single, force: force}, nil
}

// vacant checks whether dest may be written. With force it may also be an earlier export; anything else at that path may be somebody's data and must
// stay.
func vacant(dest string, single, force bool) error {
	st, err := os.Lstat(dest)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !force:
		return fmt.Errorf("%w\nhint: choose another path, or use --force to replace it", ErrExists)
	case single && st.Mode().IsRegular():
		return nil
	case single || !st.IsDir():
		return fmt.Errorf("%w and is not an export, so it is not replaced\nhint: choose another path", ErrExists)
	}
	entries, err := os.ReadDir(dest)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !written(e.Name()) {
			return fmt.Errorf(
				"%w and contains %s, which no export writes, so it is not replaced\nhint: choose another path, or remove it yourself",
				ErrExists,
				e.Name(),
			)
		}
	}
	return nil
}

// written reports whether an export writes files of that name. A tokenizer may have any name, but must not be another kind of file.
func written(name string) bool {
	known := []string{
		ConfigFile,
		GenerationFile,
		ParamsFile,
		BinFile,
		"model.safetensors.index.json",
		"LICENSE",
		"LICENSE.txt",
		"README.md",
		"USE_POLICY.md",
	}
	return slices.Contains(known, name) || slices.Contains(tokenizerNames, name) || strings.HasPrefix(name, "tok") ||

		strings.HasPrefix(name, "model") && strings.HasSuffix(name, ".safetensors")
}

// write makes one durable file; if dest is a single file, name is ignored.
func (p *place) write(name string, fill func(io.Writer) error) (err error) {
	if name == "" {
		name = filepath.Base(p.dest)
	}
	f, err := os.OpenFile(filepath.Join(p.temp, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("two files are called %s", name)
	}
	if err != nil {
		return err
	}
	w := &counter{w: f}
	b := bufio.NewWriterSize(w, 1<<20)
	err = fill(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	p.files, p.bytes = append(p.files, name), p.bytes+w.n
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func (p *place) put(name string, raw []byte) error {
	return p.write(name, func(w io.Writer) error { _, err := w.Write(raw); return err })
}

func (p *place) copy(path string) error {
	f, err := foreign.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return p.write(filepath.Base(path), func(w io.Writer) error { _, err := io.Copy(w, f); return err })
}

// commit renames. Between the two renames of a replacement, dest is missing for a moment; a crash there leaves the old one next to it, with the
// suffix .old.
func (p *place) commit() error {
	if err := syncDir(p.temp); err != nil {
		return err
	}
	if err := vacant(p.dest, p.single, p.force); err != nil { // another process may have been faster
		return err
	}
	parent := filepath.Dir(p.dest)
	if p.single {
		from := filepath.Join(p.temp, filepath.Base(p.dest))
		err := errors.ErrUnsupported
		if !p.force { // a link never replaces what another export created meanwhile
			if err = os.Link(from, p.dest); errors.Is(err, os.ErrExist) {
				return ErrExists
			}
		}
		if err != nil { // replacement requested, or no hard links on this file system
			err = os.Rename(from, p.dest)
		}
		if err != nil {
			return err
		}
		return syncDir(parent)
	}
	old := p.temp + ".old"
	err := os.Rename(p.dest, old)
	if errors.Is(err, os.ErrNotExist) {
		old = ""
	} else if err != nil {
		return err
	}
	if err := os.Rename(p.temp, p.dest); err != nil {
		if old != "" {
			err = errors.Join(err, os.Rename(old, p.dest))
		}
		return err
	}
	if err := syncDir(parent); err != nil || old == "" {
		return err
	}
	return os.RemoveAll(old)
}

// discard removes what is left at the temporary name.
func (p *place) discard() { os.RemoveAll(p.temp) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
