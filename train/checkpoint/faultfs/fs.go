package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/train/checkpoint"
)

// ErrCrash is the error of every operation after the power failure.
var ErrCrash = errors.New("faultfs: the machine has crashed")

// Op is an operation that changes something.
type Op struct {
	N     int    // 1 is the first
	Kind  string // "mkdir", "create", "write", "sync", "rename", "remove", "syncdir"
	Path  string
	Bytes int // length of a write
}

func (o Op) String() string { return fmt.Sprintf("%d %s %s", o.N, o.Kind, o.Path) }

// FS is the file system. It implements checkpoint.FS and is not safe for concurrent use.
type FS struct {
	// Fault is called before each operation; the operation fails with its error. A failing write writes a part first.
	Fault func(Op) error
	// ReadFault is called before each reading operation ("open", "read", "readdir"); the operation fails with its error.
	ReadFault func(kind, path string) error
	// FreeBytes is the result of Free; -1 (the default) means unknown.
	FreeBytes int64
	Trace     []Op // all operations so far

	root    *node
	crashAt int
	rng     *rand.Rand
	crashed bool
}

var _ checkpoint.FS = (*FS)(nil)

// node is a file or a directory.
type node struct {
	dir     bool
	data    []byte // of a file, as a reader sees it
	durable []byte // of a file, as of the last Sync
	entries map[string]*node
	safe    map[string]*node // entries as of the last SyncDir
	pending []change         // since then
}

// change is one atomic change of a directory: a name gone, a name set, or both.
type change struct {
	gone, set string
	node      *node
}

func (c change) apply(m map[string]*node) {
	if c.gone != "" {
		delete(m, c.gone)
	}
	if c.set != "" {
		m[c.set] = c.node
	}
}

func newDir() *node {
	return &node{dir: true, entries: map[string]*node{}, safe: map[string]*node{}}
}

// New returns an empty file system.
func New() *FS { return &FS{root: newDir(), FreeBytes: -1} }

// CrashAt makes the n-th operation from now (1 is the next) the last, and completes it only in part.
func (f *FS) CrashAt(n int, seed uint64) {
	f.crashAt = len(f.Trace) + n
	f.rng = rand.New(rand.NewPCG(seed, 1))
}

// step counts an operation and returns how much of it to do: all (1), or a part and the error.
func (f *FS) step(kind, path string, bytes int) (part float64, err error) {
	if f.crashed {
		return 0, ErrCrash
	}
	op := Op{len(f.Trace) + 1, kind, path, bytes}
	f.Trace = append(f.Trace, op)
	if op.N == f.crashAt {
		f.crashed = true
		return f.rng.Float64(), ErrCrash
	}
	if f.Fault != nil {
		if err := f.Fault(op); err != nil {
			return 0.5, &fs.PathError{Op: kind, Path: path, Err: err}
		}
	}
	return 1, nil
}

// reading calls ReadFault for an operation that changes nothing.
func (f *FS) reading(kind, path string) error {
	if f.ReadFault == nil {
		return nil
	}
	if err := f.ReadFault(kind, path); err != nil {
		return &fs.PathError{Op: kind, Path: path, Err: err}
	}
	return nil
}

// find walks to a node; nil if it does not exist.
func (f *FS) find(name string) *node {
	n := f.root
	for _, p := range split(name) {
		if n == nil || !n.dir {
			return nil
		}
		n = n.entries[p]
	}
	return n
}

func split(name string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(filepath.Clean(name)), "/"), func(s string) bool { return s == "" || s == "." })
}

func missing(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// parent is the directory of a name, which must exist.
func (f *FS) parent(op, name string) (*node, string, error) {
	d := f.find(filepath.Dir(name))
	if d == nil || !d.dir {
		return nil, "", missing(op, name)
	}
	return d, filepath.Base(name), nil
}

func (d *node) change(c change) {
	c.apply(d.entries)
	d.pending = append(d.pending, c)
}

// MkdirAll makes a directory and its parents.
func (f *FS) MkdirAll(name string) error {
	n := f.root
	for _, p := range split(name) {
		next := n.entries[p]
		if next == nil {
			part, err := f.step("mkdir", name, 0)
			if next = newDir(); part >= 0.5 {
				n.change(change{set: p, node: next})
			}
			if err != nil {
				return err
			}
		}
		if !next.dir {
			return &fs.PathError{Op: "mkdir", Path: name, Err: errors.New("not a directory")}
		}
		n = next
	}
	return nil
}

// Create makes an empty file.
func (f *FS) Create(name string) (checkpoint.File, error) {
	d, base, err := f.parent("create", name)
	if err != nil {
		return nil, err
	}
	part, err := f.step("create", name, 0)
	n := &node{}
	if part > 0.5 {
		d.change(change{set: base, node: n})
	}
	if err != nil {
		return nil, err
	}
	return &file{f, n, name}, nil
}

type file struct {
	fs   *FS
	n    *node
	name string
}

func (w *file) Write(p []byte) (int, error) {
	part, err := w.fs.step("write", w.name, len(p))
	n := len(p)
	if err != nil {
		n = int(part * float64(n))
	}
	w.n.data = append(w.n.data, p[:n]...)
	return n, err
}

func (w *file) Sync() error {
	part, err := w.fs.step("sync", w.name, 0)
	if err != nil {
		from := len(w.n.durable)
		w.n.durable = slices.Clone(w.n.data[:from+int(part*float64(len(w.n.data)-from))])
		return err
	}
	w.n.durable = slices.Clone(w.n.data)
	return nil
}

func (w *file) Close() error {
	if w.fs.crashed {
		return ErrCrash
	}
	return nil
}

// Rename moves a name within one directory.
func (f *FS) Rename(from, to string) error {
	d, a, err := f.parent("rename", from)
	if err != nil {
		return err
	}
	if filepath.Dir(from) != filepath.Dir(to) {
		return &fs.PathError{Op: "rename", Path: to, Err: errors.New("faultfs renames within one directory only")}
	}
	b := filepath.Base(to)
	n := d.entries[a]
	if n == nil {
		return missing("rename", from)
	}
	if old := d.entries[b]; old != nil && old.dir {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	part, err := f.step("rename", from+" → "+b, 0)
	if part > 0.5 {
		d.change(change{gone: a, set: b, node: n})
	}
	return err
}

// RemoveAll removes a tree, one entry at a time.
func (f *FS) RemoveAll(name string) error {
	if f.crashed {
		return ErrCrash
	}
	d, base, err := f.parent("remove", name)
	if err != nil || d.entries[base] == nil {
		return nil
	}
	for _, child := range slices.Sorted(maps.Keys(d.entries[base].entries)) {
		if err := f.RemoveAll(filepath.Join(name, child)); err != nil {
			return err
		}
	}
	part, err := f.step("remove", name, 0)
	if part > 0.5 {
		d.change(change{gone: base})
	}
	return err
}

// ReadDir lists names.
func (f *FS) ReadDir(name string) ([]string, error) {
	if f.crashed {
		return nil, ErrCrash
	}
	if err := f.reading("readdir", name); err != nil {
		return nil, err
	}
	n := f.find(name)
	if n == nil {
		return nil, missing("readdir", name)
	}
	if !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return slices.Sorted(maps.Keys(n.entries)), nil
}

// SyncDir makes the entries of a directory durable.
func (f *FS) SyncDir(name string) error {
	n := f.find(name)
	if n == nil || !n.dir {
		return missing("syncdir", name)
	}
	part, err := f.step("syncdir", name, 0)
	k := len(n.pending)
	if err != nil {
		k = int(part * float64(k))
	}
	for _, c := range n.pending[:k] {
		c.apply(n.safe)
	}
	n.pending = n.pending[k:]
	return err
}

// Free returns FreeBytes.
func (f *FS) Free(string) (int64, error) { return f.FreeBytes, nil }

type source struct {
	fs   *FS
	name string
	data []byte
}

func (s source) Size() int64  { return int64(len(s.data)) }
func (s source) Close() error { return nil }
func (s source) ReadAt(p []byte, off int64) (int, error) {
	if s.fs.crashed {
		return 0, ErrCrash
	}
	if err := s.fs.reading("read", s.name); err != nil {
		return 0, err
	}
	if off > int64(len(s.data)) {
		return 0, io.EOF
	}
	n := copy(p, s.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Open opens a file for reading.
func (f *FS) Open(name string) (checkpoint.Source, error) {
	if f.crashed {
		return nil, ErrCrash
	}
	if err := f.reading("open", name); err != nil {
		return nil, err
	}
	n := f.find(name)
	if n == nil {
		return nil, missing("open", name)
	}
	if n.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is a directory")}
	}
	return source{f, name, n.data}, nil
}

// Corrupt changes the contents of a file durably, without an operation.
func (f *FS) Corrupt(name string, change func([]byte) []byte) error {
	n := f.find(name)
	if n == nil || n.dir {
		return missing("corrupt", name)
	}
	n.data = change(slices.Clone(n.data))
	n.durable = n.data
	return nil
}

// Files lists all files, with their directories.
func (f *FS) Files() []string {
	var out []string
	var walk func(string, *node)
	walk = func(path string, n *node) {
		if !n.dir {
			out = append(out, path)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(n.entries)) {
			walk(path+"/"+name, n.entries[name])
		}
	}
	walk("", f.root)
	return out
}
