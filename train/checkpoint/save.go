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

// Content is what goes into a checkpoint.
type Content struct {
	State State
	Files []TensorFile
	// Beside are small files by name that explain the others to other programs, such as config.json.
	Beside map[string][]byte
}

// TensorFile is one safetensors file. Data is called once for each tensor, in the order of the file, and writes its bytes: little-endian,
// row-major, in pieces if it likes, so the model need never be in memory twice.
type TensorFile struct {
	Name     string
	Tensors  []safetensors.Tensor
	Metadata map[string]string
	Data     func(t safetensors.Tensor, w io.Writer) error
}

// Saved tells of a checkpoint that was committed.
type Saved struct {
	Info
	Took    time.Duration
	Removed []string // names of those that were rotated out
	Warning error    // what went wrong after the commit (pointer, rotation); the checkpoint is safe all the same
}

// Save writes a checkpoint and then rotates. On error (a *SaveError) the older checkpoints are as they were. A cancelled ctx stops it between two
// writes.
func (s *Store) Save(ctx context.Context, c Content) (Saved, error) {
	begin := time.Now()
	info, err := s.save(ctx, c)
	if err != nil {
		return Saved{}, &SaveError{Step: c.State.Step, Dir: s.root, Err: named(err)}
	}
	out := Saved{Info: info}
	warn := s.point(info.Name)
	if out.Removed, err = s.Prune(ctx); warn == nil {
		warn = err
	}
	if warn != nil {
		out.Warning = fmt.Errorf("checkpoint: %s is saved, but: %w", info.Path, named(warn))
	}
	out.Took = time.Since(begin)
	return out, nil
}

// save does everything up to the commit. The order of its operations is what the promises of the package rest on.
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
		s.fs.RemoveAll(tmp) // gives the space back at once; what remains is swept by the next Save
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
		return err // two files of one name, say
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

// point updates the pointer for people and scripts.
func (s *Store) point(name string) error {
	path := filepath.Join(s.root, latestFile)
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

// next is the serial number of the next commit and a name that is free.
func (s *Store) next(ctx context.Context, step int64) (int64, string, error) {
	infos, err := s.List(ctx)
	if err != nil {
		return 0, "", err
	}
	serial, skip, again := int64(1), int64(0), 1
	for _, in := range infos {
		serial = max(serial, in.Serial+1)
		if in.Serial == 0 && !errors.Is(in.Err, ErrDamaged) {
			// It could not be read, and may be newer than what could be. Whatever its number is, the next must be above it.
			skip += 1 << 20
		}
		if st, n, _ := parseName(in.Name); st == step {
			again = max(again, n+1)
		}
	}
	return serial + skip, nameOf(step, again), nil
}
