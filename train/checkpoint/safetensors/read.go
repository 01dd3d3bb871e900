package safetensors

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
)

// File is an open file with a validated header. It may be read from several goroutines.
type File struct {
	name   string
	h      header
	at     map[string]int
	r      io.ReaderAt
	mapped []byte // the whole file, nil if it is not mapped
	close  func() error
}

// Open maps a file into memory and validates its header. The file must not be truncated while it is open: the system kills a process that reads a
// mapped page that is gone. Use New with an os.File if that may happen.
func Open(path string) (*File, error) {
	raw, unmap, err := Map(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: open %s: %w", path, err)
	}
	f, err := New(path, bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		if pickle := CheckPickle(raw, path); pickle != nil {
			err = fmt.Errorf("safetensors: %s: %w", path, pickle)
		}
		unmap()
		return nil, err
	}
	f.mapped, f.close = raw, unmap
	return f, nil
}

// New validates the header of a file of size bytes read from r. name is for messages.
func New(name string, r io.ReaderAt, size int64) (*File, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", name, err)
	}
	f := &File{name: name, h: h, r: r, at: make(map[string]int, len(h.tensors))}
	for i, t := range h.tensors {
		f.at[t.Name] = i
	}
	return f, nil
}

// Name is the path or name with which the file was opened.
func (f *File) Name() string { return f.name }

// Tensors lists the tensors in the order of the data.
func (f *File) Tensors() []Tensor { return slices.Clone(f.h.tensors) }

// Metadata is a copy of the __metadata__ strings.
func (f *File) Metadata() map[string]string { return maps.Clone(f.h.meta) }

// Lookup finds a tensor by name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.at[name]
	if !ok {
		return Tensor{}, false
	}
	return f.h.tensors[i], true
}

func (f *File) find(name string) (Tensor, error) {
	t, ok := f.Lookup(name)
	if !ok {
		return t, fmt.Errorf("safetensors: %s: no tensor %q among its %d", f.name, name, len(f.h.tensors))
	}
	return t, nil
}

// Read copies the bytes of a tensor to dst, whose length must match.
func (f *File) Read(name string, dst []byte) error {
	t, err := f.find(name)
	if err != nil {
		return err
	}
	if int64(len(dst)) != t.Bytes() {
		return fmt.Errorf("safetensors: %s: tensor %q has %d bytes, but the destination has %d", f.name, name, t.Bytes(), len(dst))
	}
	if err := readFull(f.r, dst, f.h.start+t.Begin); err != nil {
		return fmt.Errorf("safetensors: %s: tensor %q: %w", f.name, name, err)
	}
	return nil
}

// Reader streams the bytes of a tensor.
func (f *File) Reader(name string) (*io.SectionReader, error) {
	t, err := f.find(name)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f.r, f.h.start+t.Begin, t.Bytes()), nil
}

// Bytes is the tensor's memory without a copy if the file is mapped (read-only, invalid after Close; old files may not align it), otherwise a copy.
func (f *File) Bytes(name string) ([]byte, error) {
	t, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if f.mapped != nil {
		return f.mapped[f.h.start+t.Begin : f.h.start+t.End : f.h.start+t.End], nil
	}
	dst := make([]byte, t.Bytes())
	return dst, f.Read(name, dst)
}

// Close unmaps the file. Close is idempotent. The reader given to New stays open.
func (f *File) Close() error {
	c := f.close
	if c == nil {
		return nil
	}
	f.close, f.mapped, f.r = nil, nil, closed{}
	return c()
}

type closed struct{}

func (closed) ReadAt([]byte, int64) (int, error) { return 0, fmt.Errorf("the file is closed") }
