package launch

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript reads process groups, one a line ("-" before it takes it back), and kills them if its input then ends without the line "done". It
// ignores the signals that a terminal or an administrator may send to end the job, because the supervisor handles those.
const guardScript = `trap "" HUP INT QUIT TERM USR1 USR2 PIPE TSTP; all=; while read -r g; do [ "$g" = done ] && exit 0; ` +
	`case $g in -*) old=$all; all=; for o in $old; do [ "-$o" = "$g" ] || all="$all $o"; done;; *) all="$all $g";; esac; done; ` +
	`for g in $all; do kill -9 -"$g"; done`

// Guard is a process that briefly outlives the supervisor. The kernel's parent-death signal reaches only direct children; if the supervisor dies without
// a chance to act (SIGKILL), the guard kills whole process groups, including children of a rank such as a shell script. It runs in a separate session, holds
// no file of the job, and detects the supervisor's death by EOF on a pipe. A nil *Guard does nothing.
type Guard struct {
	cmd  *exec.Cmd
	once sync.Once
	mu   sync.Mutex
	to   *os.File
}

// NewGuard starts a guard.
func NewGuard() (*Guard, error) {
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
	return &Guard{cmd: cmd, to: wr}, nil
}

// Watch gives the guard a process group to kill.
func (g *Guard) Watch(pgid int) {
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		fmt.Fprintln(g.to, pgid)
	}
}

// Forget takes a process group back: it has ended, and its number may be reused.
func (g *Guard) Forget(pgid int) {
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		fmt.Fprintln(g.to, -pgid)
	}
}

// Dismiss ends the guard: nothing is to be killed any more.
func (g *Guard) Dismiss() {
	if g == nil {
		return
	}
	g.once.Do(func() {
		fmt.Fprintln(g.to, "done")
		g.to.Close()
		_ = g.cmd.Wait()
	})
}
