//go:build !linux

package remote

// shmFree returns -1: only Linux has /dev/shm.
func shmFree() int64 { return -1 }
