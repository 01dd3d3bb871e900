//go:build !linux

package launch

import "syscall"

// sysProcAttr puts a rank into the job's process group (0: a new one). Only Linux has a parent-death signal.
func sysProcAttr(pgid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: pgid}
}

// bind does nothing: the system does not support it.
func bind([]int) error { return nil }

// groupRuns cannot tell zombies apart here, so it trusts the kill that found a process.
func groupRuns(int) bool { return true }
