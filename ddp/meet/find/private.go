package find

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private returns an error unless an open file is a regular one that only this user, or the administrator, can read and write.
func private(file *os.File, hint string) error {
	st, err := file.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file.Name())
	}
	return owned(file.Name(), st, hint)
}

func owned(name string, st fs.FileInfo, hint string) error {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() && sys.Uid != 0 {
		return fmt.Errorf("%s belongs to user %d, this process to user %d\n%s", name, sys.Uid, os.Geteuid(), hint)
	}
	if perm := st.Mode().Perm(); perm&0o077 != 0 {
		return fmt.Errorf("%s has mode %#o, so other users can read or write it\n%s", name, perm, hint)
	}
	return nil
}

// privateFolder creates a folder that only this user may enter, or checks that it is one.
func privateFolder(path string) (string, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile; who uses it creates it again
		return path, nil
	}
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return "", fmt.Errorf("%s is not a folder\nhint: remove it", path)
	}
	return path, owned(path, st, "hint: remove it, or set GOTRAIN_MASTER_ADDR=127.0.0.1")
}

// openPrivate opens a file for reading. Opening has no effect on anything but a file: a pipe does not block, and a link is not followed.
func openPrivate(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}
