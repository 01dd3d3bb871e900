package images

import (
	"io/fs"
	"syscall"
)

// changeTime is when the file system saw the last change of a file, in nanoseconds; 0: unknown.
func changeTime(st fs.FileInfo) int64 {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return sys.Ctim.Nano()
}
