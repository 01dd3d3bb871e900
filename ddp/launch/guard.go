package launch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guardScript reads a process group and kills it if its input then ends without a further line. It ignores the signals that a terminal or an administrator
// may send to end the job, because the supervisor handles those.
const guardScript = `trap "" HUP INT QUIT TERM USR1 USR2 PIPE TSTP; read -r group || exit 0; read -r word || kill -9 -"$group"`

// guard is a process that briefly outlives the supervisor. The kernel's parent-death signal reaches only the ranks; if the supervisor dies without
// a chance to act (SIGKILL), the guard kills the whole group, including children of a rank such as a shell script. It runs in a separate session, holds
// no file of the job, and detects the supervisor's death by EOF on a pipe.
type guard struct {
	cmd *exec.Cmd
	to  *os.File
}

func newGuard() (*guard, error) {
	rd, wr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.Stdin, cmd.Dir, cmd.Env = rd, "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		wr.Close()
		return nil, err
	}
	return &guard{cmd, wr}, nil
}

// watch sends the guard the process group to kill.
func (g *guard) watch(pgid int) {
	if g != nil {
		fmt.Fprintln(g.to, pgid)
	}
}

// dismiss ends the guard after the job.
func (g *guard) dismiss() {
	fmt.Fprintln(g.to, "done")
	g.to.Close()
	_ = g.cmd.Wait()
}
