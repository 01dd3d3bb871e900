package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Store is a directory of checkpoints. It is not safe for concurrent use, and only one process may write at a time.
type Store struct {
	fs     FS
	root   string
	keep   int
	broken map[string]error // found damaged by this process
}

// New returns the store at root, which need not exist yet. keep is the number of checkpoints that rotation keeps; it is at least 2, so that a damaged
// newest one is never the only one; 0 keeps all.
func New(fs FS, root string, keep int) *Store {
	if keep > 0 {
		keep = max(keep, 2)
	}
	return &Store{fs: fs, root: filepath.Clean(root), keep: max(keep, 0), broken: map[string]error{}}
}

// Root is the directory.
func (s *Store) Root() string { return s.root }

// Info is what is known about a checkpoint without reading its tensors.
type Info struct {
	Name   string // "step-00001000"
	Path   string
	Step   int64
	Serial int64
	Time   time.Time
	Bytes  int64
	Err    error // why it cannot be used, judging from manifest and file sizes
}

var (
	nameRE  = regexp.MustCompile(`^step-([0-9]{8,18})(?:-([0-9]{1,9}))?$`)
	staleRE = regexp.MustCompile(`^(step-[0-9]{8,18}(-[0-9]{1,9})?|latest|best)\.tmp$`)
)

// Files in the root with the name of a checkpoint.
const (
	latestFile = "latest" // for people and scripts
	bestFile   = "best"   // which checkpoint rotation keeps
)

func nameOf(step int64, again int) string {
	if again > 1 {
		return fmt.Sprintf("step-%08d-%d", step, again)
	}
	return fmt.Sprintf("step-%08d", step)
}

// parseName is the inverse of nameOf; ok is false if the name is not a checkpoint's.
func parseName(name string) (step int64, again int, ok bool) {
	m := nameRE.FindStringSubmatch(name)
	if m == nil {
		return 0, 0, false
	}
	step, _ = strconv.ParseInt(m[1], 10, 64)
	again = 1
	if m[2] != "" {
		again, _ = strconv.Atoi(m[2])
	}
	return step, again, true
}

// names lists the root; a missing root is empty.
func (s *Store) names() ([]string, error) {
	names, err := s.fs.ReadDir(s.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoint: list %s: %w", s.root, err)
	}
	slices.Sort(names)
	return names, nil
}

// List describes all checkpoints, the one committed last first; those without a readable manifest follow the good ones, by step.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var out []Info
	for _, name := range names {
		if _, _, ok := parseName(name); !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, _ := s.info(name)
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.Serial, a.Serial), cmp.Compare(b.Step, a.Step), strings.Compare(b.Name, a.Name))
	})
	return out, nil
}

// info reads the manifest and compares sizes.
func (s *Store) info(name string) (Info, Manifest) {
	step, _, _ := parseName(name)
	info := Info{Name: name, Path: filepath.Join(s.root, name), Step: step}
	m, err := s.manifest(name)
	if err != nil {
		info.Err = err
		return info, m
	}
	info.Serial, info.Time, info.Bytes = m.Serial, m.Time, m.Bytes()
	if err := s.broken[name]; err != nil {
		info.Err = err
		return info, m
	}
	for _, e := range m.Files {
		if err := s.checkSize(name, e); err != nil {
			info.Err = err
			break
		}
	}
	return info, m
}

func (s *Store) checkSize(name string, e Entry) error {
	var f Source
	err := again(func() (err error) {
		f, err = s.fs.Open(filepath.Join(s.root, name, e.Name))
		return err
	})
	if err != nil {
		return unreadable(e.Name, err)
	}
	defer f.Close()
	if f.Size() != e.Size {
		return damaged("%s has %d bytes, but the manifest says %d", e.Name, f.Size(), e.Size)
	}
	return nil
}

func (s *Store) manifest(name string) (Manifest, error) {
	step, _, ok := parseName(name)
	if !ok {
		return Manifest{}, fmt.Errorf("%q is not a checkpoint name such as %s", name, nameOf(1000, 1))
	}
	var raw []byte
	err := again(func() (err error) {
		raw, err = s.readSmall(filepath.Join(s.root, name, ManifestFile))
		return err
	})
	if err != nil {
		return Manifest{}, unreadable(ManifestFile, err)
	}
	return decodeManifest(raw, step)
}

// maxSmall is larger than any manifest, or any state with its recipe.
const maxSmall = 64 << 20

// readSmall reads a file that is known to be small.
func (s *Store) readSmall(path string) ([]byte, error) {
	f, err := s.fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > maxSmall {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", f.Size(), int64(maxSmall))
	}
	raw := make([]byte, f.Size())
	n, err := f.ReadAt(raw, 0)
	switch {
	case n == len(raw):
		return raw, nil
	case err == nil || errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	}
	return nil, err // a read error says nothing about the contents
}

// Any reports whether a folder has a checkpoint that looks good: its manifest is readable, and its files have their sizes.
func Any(dir string) bool {
	infos, err := New(OS{}, dir, 2).List(context.Background())
	return err == nil && slices.ContainsFunc(infos, func(i Info) bool { return i.Err == nil })
}
