//go:build unix

package train

import (
	"os"
	"syscall"
)

// identity returns what tells a folder from its copies: the number of its inode and when that was last changed, which no copy has.
func identity(path string) (id [3]int64) {
	st, err := os.Stat(path)
	if err != nil {
		return id
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		sec, nsec := changed(sys)
		id = [3]int64{int64(sys.Ino), sec, nsec}
	}
	return id
}
