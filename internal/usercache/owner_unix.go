//go:build unix

package usercache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private rejects a directory that another user owns or can write to. To read, one of root is private as well.
func private(st fs.FileInfo, read bool) error {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() && !(read && sys.Uid == 0) {
		return fmt.Errorf("belongs to user %d, not to user %d", sys.Uid, os.Geteuid())
	}
	if m := st.Mode().Perm(); m&0o022 != 0 {
		return fmt.Errorf("is writable by others (mode %04o)", m)
	}
	return nil
}
