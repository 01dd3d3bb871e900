package launch

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/internal/procfs"
)

// sysProcAttr puts a rank into the job's process group (0: a new one) and has the kernel kill it when the forking thread ends.
func sysProcAttr(pgid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: pgid, Pdeathsig: syscall.SIGKILL}
}

// bind sets the CPU affinity of the calling thread, which its child processes inherit. nil leaves it unchanged.
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

// groupRuns reports whether a process group has a member that is not a zombie. An orphaned zombie stays until init reaps
// it, which is not worth waiting for.
func groupRuns(pgid int) bool {
	return slices.ContainsFunc(procfs.All(), func(p procfs.Process) bool { return p.Group == pgid && !p.Ended() })
}
