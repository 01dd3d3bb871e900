package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// Checkpoint is an open checkpoint; when it was opened, every byte matched its manifest.
type Checkpoint struct {
	Info
	State    State
	Manifest Manifest
	files    map[string]*safetensors.File
	sources  []Source
}

// File is a file of tensors, or nil if the checkpoint has none of that name.
func (c *Checkpoint) File(name string) *safetensors.File { return c.files[name] }

// Close closes the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, src := range c.sources {
		errs = append(errs, src.Close())
	}
	c.sources = nil
	return errors.Join(errs...)
}

// Report explains how Latest made its choice.
type Report struct {
	Chosen  string // name, "" if there was nothing to choose
	Step    int64
	Skipped []Skipped // newer ones that could not be used
}

// Skipped is a checkpoint that could not be used.
type Skipped struct {
	Name   string
	Reason error
}

// FellBack reports whether a newer checkpoint was skipped, which is worth a warning.
func (r Report) FellBack() bool { return len(r.Skipped) > 0 }

// String is the report for the log, with one line for each skipped checkpoint.
func (r Report) String() string {
	var b strings.Builder
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "checkpoint %s cannot be used: %v\n", s.Name, s.Reason)
	}
	switch {
	case r.Chosen == "":
		b.WriteString("no checkpoint to resume from")
	case r.FellBack():
		fmt.Fprintf(&b, "falling back to checkpoint %s", r.Chosen)
	default:
		fmt.Fprintf(&b, "resuming from checkpoint %s", r.Chosen)
	}
	return b.String()
}

// Latest opens the newest checkpoint that verifies. If there is none at all, the error is ErrNone; if there are some but none can be used, it is
// another error, so that a run never starts over by accident.
func (s *Store) Latest(ctx context.Context) (*Checkpoint, Report, error) {
	c, r, err := s.latest(ctx)
	for range 3 {
		if !errors.Is(err, errGone) {
			break
		}
		c, r, err = s.latest(ctx) // a running job has rotated: what is there now is newer
	}
	return c, r, err
}

// errGone means that a checkpoint was removed while it was being opened.
var errGone = errors.New("it was removed meanwhile")

// latest is one attempt of Latest; the error is errGone if a checkpoint was removed meanwhile.
func (s *Store) latest(ctx context.Context) (*Checkpoint, Report, error) {
	var r Report
	infos, err := s.List(ctx)
	if err != nil {
		return nil, r, err
	}
	if len(infos) == 0 {
		return nil, r, fmt.Errorf("checkpoint: %s: %w", s.root, ErrNone)
	}
	for i, in := range infos {
		c, err := s.Load(ctx, in.Name)
		if err == nil {
			r.Chosen, r.Step = c.Name, c.Step
			for _, in := range infos[i+1:] { // those without a readable manifest come last, but may be newer
				if in.Serial == 0 && in.Step >= c.Step {
					r.Skipped = append(r.Skipped, Skipped{in.Name, in.Err})
				}
			}
			return c, r, nil
		}
		if ctx.Err() != nil {
			return nil, r, ctx.Err()
		}
		if errors.Is(err, errGone) {
			return nil, r, err
		}
		r.Skipped = append(r.Skipped, Skipped{in.Name, err})
	}
	return nil, r, fmt.Errorf(
		"checkpoint: none of the %d checkpoints in %s can be used:\n%s\n"+
			"hint: restore one from a copy, or start over in another directory",
		len(infos),
		s.root,
		r,
	)
}

// Load verifies and opens the named checkpoint of the store.
func (s *Store) Load(ctx context.Context, name string) (*Checkpoint, error) {
	return s.load(ctx, name, true)
}

// Open is like Load, for a checkpoint that another process of the job has just verified: sizes, headers and the state are checked, but the tensors
// are not read to verify their checksums.
func (s *Store) Open(ctx context.Context, name string) (*Checkpoint, error) {
	return s.load(ctx, name, false)
}

func (s *Store) load(ctx context.Context, name string, all bool) (*Checkpoint, error) {
	info, m := s.info(name)
	if s.gone(name) {
		return nil, fmt.Errorf("checkpoint: there is no %s, or %w\nhint: %s", info.Path, errGone, s.have(ctx))
	}
	if info.Err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", info.Path, info.Err)
	}
	c := &Checkpoint{Info: info, Manifest: m, files: map[string]*safetensors.File{}}
	for _, e := range m.Files {
		if err := s.open(ctx, c, e, all || e.Name == StateFile); err != nil {
			c.Close()
			if s.gone(name) {
				err = errGone
			} else if ctx.Err() == nil && errors.Is(err, ErrDamaged) {
				s.broken[name] = err
			}
			return nil, fmt.Errorf("checkpoint: %s: %w", info.Path, err)
		}
	}
	if metrics, arrays := s.evaluated(name, m); metrics != nil {
		c.State.Metrics, c.State.Arrays = metrics, arrays
	}
	return c, nil
}

// gone reports whether the directory of a checkpoint certainly does not exist.
func (s *Store) gone(name string) bool {
	_, err := s.fs.ReadDir(filepath.Join(s.root, name))
	return errors.Is(err, fs.ErrNotExist)
}

// State reads the state of the named checkpoint without its tensors, which are neither opened nor verified.
func (s *Store) State(name string) (State, error) {
	path := filepath.Join(s.root, name)
	m, err := s.manifest(name)
	if err != nil {
		return State{}, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	raw, err := s.readSmall(filepath.Join(path, StateFile))
	if err != nil {
		return State{}, fmt.Errorf("checkpoint: %s: %w", path, unreadable(StateFile, err))
	}
	sum := sha256.Sum256(raw)
	for _, e := range m.Files {
		if e.Name == StateFile && e.SHA256 != hex.EncodeToString(sum[:]) {
			return State{}, fmt.Errorf("checkpoint: %s: %w", path, damaged("the contents of %s are not those that were saved", StateFile))
		}
	}
	st, err := decodeState(raw)
	if err != nil {
		return st, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	return st, nil
}

// have lists the checkpoints, for messages.
func (s *Store) have(ctx context.Context) string {
	infos, err := s.List(ctx)
	if err != nil || len(infos) == 0 {
		return "the store is empty"
	}
	var names []string
	for _, in := range infos {
		names = append(names, in.Name)
	}
	return "there are " + strings.Join(names, ", ")
}

// open verifies one file and adds it to the checkpoint.
func (s *Store) open(ctx context.Context, c *Checkpoint, e Entry, sum bool) error {
	var src Source
	err := again(func() (err error) {
		src, err = s.fs.Open(filepath.Join(c.Path, e.Name))
		return err
	})
	if err != nil {
		return unreadable(e.Name, err)
	}
	c.sources = append(c.sources, src)
	if sum {
		if err := verify(ctx, src, e); err != nil {
			return err
		}
	}
	switch {
	case e.Name == StateFile:
		if e.Size > maxSmall {
			return damaged("%s has %d bytes, more than the limit of %d", e.Name, e.Size, int64(maxSmall))
		}
		raw := make([]byte, e.Size)
		if _, err := io.ReadFull(io.NewSectionReader(src, 0, e.Size), raw); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if c.State, err = decodeState(raw); err != nil {
			return err
		}
		if c.State.Step != c.Step {
			return damaged("%s belongs to step %d", e.Name, c.State.Step)
		}
	case strings.HasSuffix(e.Name, ".safetensors"):
		f, err := safetensors.New(filepath.Join(c.Path, e.Name), src, e.Size)
		if err != nil {
			if passing(err) {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
			return damaged("%s: %w", e.Name, err)
		}
		c.files[e.Name] = f
	}
	return nil
}

// verify reads a file once and checks its size and checksum.
func verify(ctx context.Context, src Source, e Entry) error {
	if src.Size() != e.Size {
		return damaged("%s has %d bytes, the manifest says %d", e.Name, src.Size(), e.Size)
	}
	sum := sha256.New()
	buf := make([]byte, min(max(e.Size, 1), 1<<20))
	for at := int64(0); at < e.Size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := 0
		err := again(func() (err error) {
			n, err = src.ReadAt(buf[:min(int64(len(buf)), e.Size-at)], at)
			return err
		})
		sum.Write(buf[:n])
		at += int64(n)
		if err != nil && at < e.Size {
			return unreadable(e.Name, err)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != e.SHA256 {
		return damaged("the contents of %s are not those that were saved (sha256 %.12s…, the manifest says %.12s…)", e.Name, got, e.SHA256)
	}
	return nil
}
