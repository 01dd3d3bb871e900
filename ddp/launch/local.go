package launch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Local is this machine as a Host: it starts ranks as child processes in one process group. It can start one part after another.
type Local struct {
	As      string              // its name in messages; "" means the host name
	started func(rank, pid int) // for tests

	part   Part
	events Events
	guard  *Guard
	pumps  sync.WaitGroup
	reads  atomic.Int64  // by all pumps
	done   chan struct{} // lets the thread that forked the ranks end

	mu    sync.Mutex
	procs []*process
	pgid  int
}

// process is one started rank.
type process struct {
	cmd  *exec.Cmd
	pipe []*os.File // read ends
	gone bool
}

// Name returns As, or the host name.
func (l *Local) Name() string {
	if l.As != "" {
		return l.As
	}
	name, _ := os.Hostname()
	return name
}

// Start starts the ranks of a part.
func (l *Local) Start(_ context.Context, p Part, e Events) error {
	l.part, l.events, l.done = p, e, make(chan struct{})
	l.mu.Lock()
	l.procs, l.pgid = nil, 0
	l.mu.Unlock()
	if p.Env == nil {
		l.part.Env = os.Environ()
	}
	if p.First.LocalWorld < 1 {
		return WithCode(ExitUsage, errors.New("launch: no ranks to start"))
	}
	g, err := NewGuard()
	if err != nil {
		e.Say("no guard process: " + err.Error() + "; if this process is killed by SIGKILL, children of the ranks will survive")
	}
	l.guard = g
	errc, done := make(chan error), l.done // the field belongs to the next start by the time that this one ends
	go func() {
		// The kernel sends the parent-death signal when the *thread* that forked ends, and a child inherits that thread's
		// CPU affinity: so one thread forks all ranks and lives as long as they do. It is never unlocked, because its affinity mask is changed.
		runtime.LockOSThread()
		err := l.spawnAll()
		errc <- err
		<-done
	}()
	if err := <-errc; err != nil {
		l.Kill()
		for _, r := range l.procs {
			_ = r.cmd.Wait()
		}
		l.drain()
		l.release()
		return err
	}
	// Ranks may be reaped only now: until then, even a dead first rank keeps the process group alive for the others to join.
	for i, r := range l.procs {
		go func() {
			o := l.reap(i, r)
			l.mu.Lock()
			r.gone = true
			l.mu.Unlock()
			e.Exit(o, 0)
		}()
	}
	return nil
}

// release ends the guard and the thread that forked.
func (l *Local) release() {
	l.guard.Dismiss()
	l.guard = nil
	close(l.done)
}

// reap waits for one rank.
func (l *Local) reap(i int, r *process) Outcome {
	st, err := r.cmd.Process.Wait()
	o := Outcome{Rank: l.part.First.Rank + i, Host: l.Name(), PID: r.cmd.Process.Pid}
	if err != nil {
		o.Code = ExitInternal
		return o
	}
	o.Code = st.ExitCode()
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		o.Signal = ws.Signal()
		o.Code = 128 + int(o.Signal)
	}
	return o
}

// Signal signals everything that still runs in the process group, because a rank may be a shell or a script that started the program proper and does not
// pass signals on. A rank that has left the group gets the signal by itself.
func (l *Local) Signal(sig syscall.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pgid == 0 {
		return
	}
	_ = syscall.Kill(-l.pgid, sig)
	for _, r := range l.procs {
		if r.gone {
			continue
		}
		if pgid, err := syscall.Getpgid(r.cmd.Process.Pid); err == nil && pgid != l.pgid {
			_ = r.cmd.Process.Signal(sig) // an error means that the process is just exiting
		}
	}
}

// Kill kills the ranks and what they started.
func (l *Local) Kill() { l.Signal(syscall.SIGKILL) }

// Running reports whether the process group has a member.
func (l *Local) Running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pgid != 0 && syscall.Kill(-l.pgid, 0) == nil && groupRuns(l.pgid)
}

// Alive reports whether a process exists.
func (l *Local) Alive(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// PIDs returns the processes of the ranks.
func (l *Local) PIDs() (out []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.procs {
		out = append(out, r.cmd.Process.Pid)
	}
	return out
}

// Finish kills whatever is left of the job, including children of ranks, and waits for the remaining output.
func (l *Local) Finish() {
	until := time.Now().Add(2 * time.Second)
	for l.pgid != 0 && syscall.Kill(-l.pgid, syscall.SIGKILL) == nil && groupRuns(l.pgid) {
		if time.Now().After(until) {
			l.events.Say("a process group still has members after SIGKILL")
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	l.drain()
	l.release()
}

// drain waits for the last output. A process that left the group may hold pipes open; drain does not wait for it long unless it writes.
func (l *Local) drain() {
	done := make(chan struct{})
	go func() { l.pumps.Wait(); close(done) }()
	until := time.Now().Add(time.Minute)
	for read := int64(-1); read != l.reads.Load() && time.Now().Before(until); {
		read = l.reads.Load()
		select {
		case <-done:
		case <-time.After(2 * time.Second):
		}
	}
	for _, r := range l.procs {
		closeAll(r.pipe)
	}
	<-done
}
