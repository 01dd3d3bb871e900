package dirlock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// boot identifies the current boot of the kernel.
func boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// space identifies the PID namespace of this process.
func space() string {
	s, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return s
}

// started is when a process began, in clock ticks since boot; "" if there is no such process or the time is unknown. A zombie counts as ended.
func started(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the name in parentheses and may contain anything.
	_, rest, ok := cutLast(string(b), ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return ""
	}
	return f[19]
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// gone reports whether the process certainly does not exist, or is only a zombie.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, ok := cutLast(string(b), ") ")
	return ok && (strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X"))
}
