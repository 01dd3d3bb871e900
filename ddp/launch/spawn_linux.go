package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr puts a rank into the job's process group (0: makes one) and has the kernel kill it when the forking thread ends.
func sysProcAttr(pgid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: pgid, Pdeathsig: syscall.SIGKILL}
}

// bind sets the processors of the calling thread, which processes forked from it inherit. nil leaves them.
func bind(cpus []int) error {
	if cpus == nil {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(0, &set)
}
