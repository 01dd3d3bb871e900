package launch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guardScript kills the process group that it was told when its input ends without a word. It ignores what a terminal or an administrator may send
// to end the job: that is the supervisor's business.
const guardScript = `trap "" HUP INT QUIT TERM USR1 USR2 PIPE TSTP; read -r group || exit 0; read -r word || kill -9 -"$group"`

// guard is a process that outlives the supervisor by a moment. The kernel's parent-death signal reaches the ranks only; when the supervisor dies without
// a chance to do anything (SIGKILL), the guard kills the whole group, also what a rank such as a shell script started. It has a session of its own, holds
// no file of the job, and learns of the supervisor's death from the end of a pipe.
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

// watch tells it the process group to kill.
func (g *guard) watch(pgid int) {
	if g != nil {
		fmt.Fprintln(g.to, pgid)
	}
}

// dismiss ends it when the job is over.
func (g *guard) dismiss() {
	fmt.Fprintln(g.to, "done")
	g.to.Close()
	_ = g.cmd.Wait()
}
