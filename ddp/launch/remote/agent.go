package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/launch/hosts"
)

// Target describes how to reach a host.
type Target struct {
	Host    hosts.Host
	Program string   // path of hcclrun on that host; with Copy, on this one
	Rsh     []string // command that replaces ssh: it gets the host and a command as further arguments
	Port    int      // of ssh, where the host has none of its own
	Key     string   // file with the private key for ssh; "": ssh decides
	Copy    bool     // send Program to the host, into the cache folder of the user, and start it there

	Forward func(env []string) []string // the variables of the job that are sent; nil: all
	Grace   time.Duration               // for the ranks if the channel ends
	Guard   *launch.Guard               // kills ssh when this process dies
	Silence time.Duration               // after which the host is lost; 0 means 10 s
}

// Agent is another machine as a Node.
type Agent struct {
	to Target

	mu     sync.Mutex
	link   *link
	copied map[string]string // path there of a program here
}

// New returns the host of a target, which Connect reaches.
func New(to Target) *Agent {
	if to.Silence == 0 {
		to.Silence = frozen
	}
	if to.Grace == 0 {
		to.Grace = launch.DefaultGrace
	}
	return &Agent{to: to, copied: map[string]string{}}
}

// Name is the name in the user's list.
func (a *Agent) Name() string { return a.to.Host.Name }

// Connect starts the agent, unless it runs. An error has what ssh said.
func (a *Agent) Connect(ctx context.Context) error {
	if l := a.current(); l != nil && l.alive() {
		return nil
	}
	l, err := a.dial(ctx)
	if err != nil {
		return launch.WithCode(launch.ExitUnavailable, fmt.Errorf("remote: host %s: %w", a.Name(), err))
	}
	a.mu.Lock()
	a.link = l
	a.mu.Unlock()
	return nil
}

func (a *Agent) current() *link {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link
}

// Ask asks the agent.
func (a *Agent) Ask(ctx context.Context, q Question) (Answer, error) {
	l := a.current()
	if l == nil {
		return Answer{}, fmt.Errorf("remote: host %s: not connected", a.Name())
	}
	ans, err := l.ask(ctx, q, nil)
	if err != nil {
		return ans, launch.WithCode(launch.ExitUnavailable, fmt.Errorf("remote: host %s: %w", a.Name(), err))
	}
	return ans, ans.err(a.Name())
}

// Send stores a program of this machine in the cache folder of the user there. A job that starts the program then starts that copy.
func (a *Agent) Send(ctx context.Context, path string) error {
	sum, err := hashFile(path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	l := a.current()
	if l == nil {
		return fmt.Errorf("remote: host %s: not connected", a.Name())
	}
	ans, err := l.ask(ctx, Question{What: askStore, Name: filepath.Base(path), Hash: sum, Size: st.Size()}, f)
	if err = errors.Join(err, ans.err(a.Name())); err != nil {
		return fmt.Errorf("remote: host %s: cannot store %s: %w", a.Name(), path, err)
	}
	a.mu.Lock()
	a.copied[path] = ans.Path
	a.mu.Unlock()
	return nil
}

// Start starts the ranks there. It connects again if the agent was lost.
func (a *Agent) Start(ctx context.Context, p launch.Part, e launch.Events) error {
	if err := a.Connect(ctx); err != nil {
		return err
	}
	if a.to.Forward != nil {
		p.Env = a.to.Forward(p.Env)
	}
	a.mu.Lock()
	if there := a.copied[p.Argv[0]]; there != "" {
		p.Argv = append([]string{there}, p.Argv[1:]...)
	}
	a.mu.Unlock()
	return a.current().start(ctx, job{Host: a.Name(), Part: p, Grace: a.to.Grace}, e)
}

// Signal passes a signal on.
func (a *Agent) Signal(sig syscall.Signal) {
	if l := a.current(); l != nil {
		l.box.send(message(kindSignal, signal{unix.SignalName(sig)}))
		if sig == syscall.SIGSTOP { // this process is about to suspend itself
			l.box.flush()
		}
	}
}

// Kill kills the ranks.
func (a *Agent) Kill() { a.Signal(syscall.SIGKILL) }

// Running reports whether something of the job is left there, as far as is known.
func (a *Agent) Running() bool {
	l := a.current()
	return l != nil && l.alive() && l.jobRuns()
}

// Alive is true: the agent reports the end of work of processes that died.
func (a *Agent) Alive(int) bool { return true }

// Finish ends what is left of the job there.
func (a *Agent) Finish() {
	if l := a.current(); l != nil {
		l.finish()
	}
}

// Close ends the agent. It returns when ssh has ended.
func (a *Agent) Close() {
	if l := a.current(); l != nil {
		l.close()
	}
}

// PID returns the process of ssh, or 0.
func (a *Agent) PID() int {
	if l := a.current(); l != nil {
		return l.cmd.Process.Pid
	}
	return 0
}

// sendFile copies a file into frames.
func (l *link) sendFile(r io.Reader) error {
	for {
		b := make([]byte, 256<<10)
		n, err := io.ReadFull(r, b)
		if n > 0 {
			l.box.must(frame{kindFile, b[:n]})
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil
		case err != nil:
			return err
		case !l.alive():
			return l.why()
		}
	}
}
