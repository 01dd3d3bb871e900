package dirlock

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/gotrain/gotrain/internal/procfs"
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
	p, err := procfs.Read(pid)
	if err != nil || p.Ended() {
		return ""
	}
	return p.Start
}

// gone reports whether the process certainly does not exist, or is only a zombie.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	p, err := procfs.Read(pid)
	return err == nil && p.Ended()
}
