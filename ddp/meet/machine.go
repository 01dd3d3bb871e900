package meet

import (
	"os"
	"strings"
)

// Machine identifies what ranks that can share memory have in common: the running kernel, its /dev/shm and the user, who owns the folder in it. Containers
// of one host with a /dev/shm each are different machines; containers that were given the same one are one machine. Network names play no part.
func Machine() string {
	return strings.Join(append(kernel(), memory()...), "/")
}

// network identifies what ranks that can reach each other's loopback addresses have in common.
func network() string {
	return strings.Join(append(kernel(), namespace()...), "/")
}

// kernel identifies the running system: its boot id, or its name where there is none.
func kernel() []string {
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return []string{strings.TrimSpace(string(b))}
	}
	return []string{hostname()}
}

func hostname() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "unknown"
	}
	return h
}
