package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// Content is the contents of a checkpoint.
type Content struct {
	State State
	Files []TensorFile
	// Beside holds small files, by name, that explain the others to other programs, such as config.json.
	Beside map[string][]byte
}

// TensorFile is one safetensors file. Data is called once for each tensor, in the order of the file, and writes its bytes (little-endian, row-major),
// optionally in pieces, so the model never needs to be in memory twice.
type TensorFile struct {
	Name     string
	Tensors  []safetensors.Tensor
	Metadata map[string]string
	Data     func(t safetensors.Tensor, w io.Writer) error
}

// Saved describes a committed checkpoint.
type Saved struct {
	Info
	Took    time.Duration
	Removed []string // names of rotated-out checkpoints
	Warning error    // failure after the commit (pointer, rotation); the checkpoint itself is safe
}

// Save writes a checkpoint and then rotates. On error (a *SaveError) the older checkpoints are untouched. Cancelling ctx stops it between two writes.
func (s *Store) Save(ctx context.Context, c Content) (Saved, error) {
	begin := time.Now()
	info, err := s.save(ctx, c)
	if err != nil {
		return Saved{}, &SaveError{Step: c.State.Step, Dir: s.root, Err: named(err)}
	}
	out := Saved{Info: info}
	warn := s.point(latestFile, info.Name)
	if out.Removed, err = s.Prune(ctx); warn == nil {
		warn = err
	}
	if warn != nil {
		out.Warning = fmt.Errorf("checkpoint: %s is saved, but: %w", info.Path, named(warn))
	}
	out.Took = time.Since(begin)
	return out, nil
}

// save does everything up to the commit. The guarantees of the package depend on the order of its operations.
func (s *Store) save(ctx context.Context, c Content) (Info, error) {
	state, err := c.State.encode()
	if err != nil {
		return Info{}, err
	}
	if err := s.Prepare(); err != nil {
		return Info{}, err
	}
	serial, name, err := s.next(ctx, c.State.Step)
	if err != nil {
		return Info{}, err
	}
	s.sweep()
	if err := s.checkFree(c, state); err != nil {
		return Info{}, err
	}
	final := filepath.Join(s.root, name)
	tmp := final + ".tmp"
	m := Manifest{Format: Format, Step: c.State.Step, Serial: serial, Time: time.Now().UTC().Truncate(time.Second)}
	if err := s.fill(ctx, tmp, c, state, &m); err != nil {
		s.fs.RemoveAll(tmp) // frees the space at once; the next Save sweeps what remains
		return Info{}, err
	}
	if err := s.fs.Rename(tmp, final); err != nil {
		s.fs.RemoveAll(tmp)
		return Info{}, err
	}
	if err := s.fs.SyncDir(s.root); err != nil {
		return Info{}, fmt.Errorf("sync %s: %w", s.root, err)
	}
	return Info{Name: name, Path: final, Step: m.Step, Serial: m.Serial, Time: m.Time, Bytes: m.Bytes()}, nil
}

// fill writes all files of a checkpoint to dir and makes them durable, the manifest last.
func (s *Store) fill(ctx context.Context, dir string, c Content, state []byte, m *Manifest) error {
	if err := s.fs.MkdirAll(dir); err != nil {
		return err
	}
	put := func(name string, write func(io.Writer) error) error {
		if err := checkName(name); err != nil {
			return err
		}
		e, err := s.write(ctx, filepath.Join(dir, name), write)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		e.Name = name
		m.Files = append(m.Files, e)
		return nil
	}
	for _, f := range c.Files {
		err := put(f.Name, func(w io.Writer) error { return safetensors.Write(w, f.Tensors, f.Metadata, f.Data) })
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Beside)) {
		err := put(name, func(w io.Writer) error { _, err := w.Write(c.Beside[name]); return err })
		if err != nil {
			return err
		}
	}
	err := put(StateFile, func(w io.Writer) error { _, err := w.Write(state); return err })
	if err != nil {
		return err
	}
	raw, err := m.encode()
	if err != nil {
		return err
	}
	if _, err := decodeManifest(raw, m.Step); err != nil {
		return err // for example two files with the same name
	}
	_, err = s.write(ctx, filepath.Join(dir, ManifestFile), func(w io.Writer) error { _, err := w.Write(raw); return err })
	if err != nil {
		return fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if err := s.fs.SyncDir(dir); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// point lets a file in the root name a checkpoint.
func (s *Store) point(file, name string) error {
	path := filepath.Join(s.root, file)
	_, err := s.write(context.Background(), path+".tmp", func(w io.Writer) error {
		_, err := io.WriteString(w, name+"\n")
		return err
	})
	if err == nil {
		err = s.fs.Rename(path+".tmp", path)
	}
	if err == nil {
		err = s.fs.SyncDir(s.root)
	}
	if err != nil {
		return fmt.Errorf("pointer %s: %w", path, err)
	}
	return nil
}

// next returns the serial number of the next commit and an unused name.
func (s *Store) next(ctx context.Context, step int64) (int64, string, error) {
	infos, err := s.List(ctx)
	if err != nil {
		return 0, "", err
	}
	serial, skip, again := int64(1), int64(0), 1
	for _, in := range infos {
		serial = max(serial, in.Serial+1)
		if in.Serial == 0 && !errors.Is(in.Err, ErrDamaged) {
			// It could not be read, and may be newer than those that could. Whatever its number, the next must be higher.
			skip += 1 << 20
		}
		if st, n, _ := parseName(in.Name); st == step {
			again = max(again, n+1)
		}
	}
	return serial + skip, nameOf(step, again), nil
}
