package remote

import "golang.org/x/sys/unix"

// shmFree returns the free bytes of /dev/shm, or -1.
func shmFree() int64 {
	var st unix.Statfs_t
	if unix.Statfs("/dev/shm", &st) != nil {
		return -1
	}
	return int64(st.Bavail) * st.Bsize
}
