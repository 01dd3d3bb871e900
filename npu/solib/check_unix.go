//go:build unix

package solib

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrUntrusted is wrapped by the error for a library that other users could change.
var ErrUntrusted = errors.New("is not loaded")

// Check returns the file to load for a path, or an error that says who could change it.
func Check(path string) (string, error) {
	if !strings.Contains(path, "/") {
		return path, nil
	}
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for at := real; ; at = filepath.Dir(at) {
		st, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		if why := reason(st, at == real); why != "" {
			return "", fmt.Errorf("%s %w: %s %s\nhint: keep the library in a system folder, or in one that only you can write to",
				path, ErrUntrusted, at, why)
		}
		if at == filepath.Dir(at) {
			return real, nil
		}
	}
}

// reason says why a file or a folder above it cannot be trusted, or "" if it can.
func reason(st fs.FileInfo, file bool) string {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "has an unknown owner"
	}
	if file && !st.Mode().IsRegular() {
		return "is not a regular file"
	}
	return judge(st.Mode(), int(sys.Uid), int(sys.Gid), os.Geteuid(), os.Getegid())
}

func judge(mode fs.FileMode, uid, gid, me, myGroup int) string {
	own := gid == me && gid == myGroup
	switch perm := mode.Perm(); {
	case uid != 0 && uid != me:
		return fmt.Sprintf("belongs to user %d", uid)
	case mode.IsDir() && mode&fs.ModeSticky != 0:
		return ""
	case perm&0o002 != 0:
		return "can be written by every user"
	case perm&0o020 != 0 && !own && gid != 0:
		return fmt.Sprintf("can be written by group %d", gid)
	}
	return ""
}
