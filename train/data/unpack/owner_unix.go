//go:build unix

package unpack

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a directory that somebody else owns or may write to.
func private(st fs.FileInfo) error {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, not to user %d", sys.Uid, os.Geteuid())
	}
	if m := st.Mode().Perm(); m&0o022 != 0 {
		return fmt.Errorf("may be written by others (mode %04o)", m)
	}
	return nil
}
