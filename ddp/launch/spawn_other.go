//go:build !linux

package launch

import "syscall"

// sysProcAttr puts a rank into the job's process group (0: makes one). Other systems than Linux have no parent-death signal.
func sysProcAttr(pgid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: pgid}
}

// bind does nothing: the system has no call for it.
func bind([]int) error { return nil }

// groupRuns cannot tell zombies apart here, so it believes the kill that found somebody.
func groupRuns(int) bool { return true }
