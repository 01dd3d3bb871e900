//go:build unix

package images

import "golang.org/x/sys/unix"

// mostOpen is how many shards a source keeps open: a small part of the files that the process may open.
func mostOpen() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return maxOpen
	}
	return int(min(maxOpen, uint64(l.Cur)/8))
}
