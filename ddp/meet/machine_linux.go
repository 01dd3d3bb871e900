package meet

import (
	"fmt"
	"os"
	"syscall"
)

// memory identifies /dev/shm: every mount of a tmpfs has a device number of its own, and a container may have been given a folder of one.
func memory() []string {
	var s syscall.Stat_t
	if err := syscall.Stat("/dev/shm", &s); err != nil {
		return []string{"no shm", hostname()}
	}
	return []string{fmt.Sprintf("shm %d:%d", s.Dev, s.Ino), fmt.Sprintf("user %d", os.Getuid())}
}

func namespace() []string {
	n, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return []string{hostname()}
	}
	return []string{n}
}
