package foreign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular is wrapped by the error for a path that is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading; for anything else, the error is ErrNotRegular and says what the path is. It does not block.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		// A socket cannot be opened at all; the system reports "no such device".
		if st, e := os.Stat(path); e == nil && !st.Mode().IsRegular() && !errors.Is(err, fs.ErrPermission) {
			err = &fs.PathError{Op: "open", Path: path, Err: notRegular(st.Mode())}
		}
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: notRegular(st.Mode())}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// notRegular describes what the path is instead of a regular file.
func notRegular(m fs.FileMode) error {
	switch {
	case m.IsDir():
		return fmt.Errorf("it is a directory, %w", ErrNotRegular)
	case m&fs.ModeNamedPipe != 0:
		return fmt.Errorf("it is a pipe, %w\nhint: write its contents to a file first", ErrNotRegular)
	case m&fs.ModeSocket != 0:
		return fmt.Errorf("it is a socket, %w", ErrNotRegular)
	case m&fs.ModeDevice != 0:
		return fmt.Errorf("it is a device, %w", ErrNotRegular)
	}
	return ErrNotRegular
}

// ErrLarge is wrapped by the error for a file that is larger than its kind can be.
var ErrLarge = errors.New("too large")

// ReadFile reads a regular file of at most limit bytes. For a larger one the error is ErrLarge, before any memory is allocated.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := st.Size()
	if size <= limit {
		raw := make([]byte, 0, size+1) // files in /proc report size 0, so count what is read
		for {
			n, err := f.Read(raw[len(raw):cap(raw)])
			raw = raw[:len(raw)+n]
			if errors.Is(err, io.EOF) {
				return raw, nil
			}
			if err != nil {
				return nil, err
			}
			if int64(len(raw)) > limit {
				size = int64(len(raw))
				break
			}
			if len(raw) == cap(raw) {
				raw = append(raw, 0)[:len(raw)]
			}
		}
	}
	return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: at least %d bytes, the limit is %d", ErrLarge, size, limit)}
}
