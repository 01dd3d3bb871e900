package checkpoint

import (
	"errors"
	"io"
	"os"

	"github.com/gotrain/gotrain/train/foreign"
)

// FS is what the store needs from a file system. Names are paths of the host. OS is the real one; package faultfs has one that crashes.
type FS interface {
	MkdirAll(dir string) error
	// Create makes an empty file, replacing any existing one.
	Create(name string) (File, error)
	Open(name string) (Source, error)
	// Rename is atomic; to does not exist or is a file.
	Rename(from, to string) error
	// RemoveAll removes a file or a directory with its contents; it is not an error if there is nothing.
	RemoveAll(name string) error
	// ReadDir lists the names in a directory; if it does not exist, the error is fs.ErrNotExist.
	ReadDir(dir string) ([]string, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(dir string) error
	// Free is the number of bytes available below dir, or -1 if unknown.
	Free(dir string) (int64, error)
}

// File is a file being written.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Source is a file being read.
type Source interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// OS is the real file system.
type OS struct{}

var _ FS = OS{}

// MkdirAll, Create, Rename and RemoveAll are those of package os.
func (OS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o777) }

// Create makes an empty file.
func (OS) Create(name string) (File, error) { return os.Create(name) }

// Rename renames.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// RemoveAll removes a tree.
func (OS) RemoveAll(name string) error { return os.RemoveAll(name) }

type osSource struct {
	*os.File
	size int64
}

func (s osSource) Size() int64 { return s.size }

// Open opens a regular file for reading.
func (OS) Open(name string) (Source, error) {
	f, err := foreign.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return osSource{f, st.Size()}, nil
}

// ReadDir lists names.
func (OS) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // does not block on a pipe
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// SyncDir syncs a directory.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Free returns the free bytes that the system reports.
func (OS) Free(dir string) (int64, error) { return free(dir) }
