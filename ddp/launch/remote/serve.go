package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	ossignal "os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
)

// beat is the time between two signs of life.
const beat = 500 * time.Millisecond

// Serving has the settings of an agent.
type Serving struct {
	Sweep func() // removes what killed ranks left on this machine; may be nil

	silence time.Duration // of the caller, after which it counts as dead; 0 is silenceMax
}

// Serve is an agent: it starts and ends ranks as the caller on the other side of in and out asks, until the caller ends the channel. Then no process of a job
// is left on this machine.
func Serve(ctx context.Context, in io.Reader, out io.Writer, with Serving) error {
	launch.OutliveReaders()
	if with.silence == 0 {
		with.silence = silenceMax
	}
	if _, err := io.WriteString(out, magic); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{box: newOutbox(out), with: with, responder: newResponder(), frames: make(chan frame), ended: make(chan error, 1)}
	self, _ := os.Executable()
	a.box.send(message(kindHello, hello{Version: Version, PID: os.Getpid(), Program: self, Server: sshServer(os.Getenv("SSH_CONNECTION"))}))
	go a.read(ctx, bufio.NewReaderSize(in, 64<<10))
	err := a.run(ctx)
	a.box.close()
	select {
	case <-a.box.done:
	case <-time.After(patience): // nobody reads
	}
	return err
}

// sshServer returns the server's address in SSH_CONNECTION: client, port, server, port.
func sshServer(s string) string {
	if f := strings.Fields(s); len(f) == 4 {
		return f[2]
	}
	return ""
}

// agent is the state of Serve. Only run uses the fields without a comment.
type agent struct {
	with      Serving
	box       *outbox
	responder *responder
	frames    chan frame
	ended     chan error  // of read
	heard     atomic.Bool // a frame came since the last beat

	hosted *hostedJob
	silent int  // beats without a frame
	paused bool // the caller suspended itself
}

// read passes frames on until the channel ends.
func (a *agent) read(ctx context.Context, in io.Reader) {
	for {
		f, err := readFrame(in)
		a.heard.Store(true)
		switch {
		case err != nil:
		case f.kind == kindCredit:
			var n int
			n, err = credit(f)
			a.box.grant(n)
		case f.kind == kindFile:
			err = a.responder.write(f.payload)
		case f.kind == kindAsk:
			var q Question
			if err = f.decode(&q); err == nil {
				a.responder.begin(q) // before the bytes of a file that follow
				go func() { a.box.send(message(kindAnswer, a.responder.answer(ctx, q))) }()
			}
		default:
			select {
			case a.frames <- f:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			a.ended <- err
			return
		}
	}
}

// run handles frames until the channel ends, the caller is silent for too long, or a signal ends this process.
func (a *agent) run(ctx context.Context) error {
	sigs := make(chan os.Signal, 4)
	// Not ignored: ranks would inherit that. Slurm warns a job's steps, and so an agent that srun started, by USR1: it is for the ranks.
	ossignal.Notify(sigs, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1)
	defer ossignal.Stop(sigs)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	defer a.end()
	for {
		select {
		case f := <-a.frames:
			a.paused = false
			if f.kind == kindBye {
				return nil
			}
			if err := a.handle(ctx, f); err != nil {
				return err
			}
		case err := <-a.ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		case <-tick.C:
			a.box.send(frame{kind: kindBeat})
			a.hosted.check()
			if a.heard.Swap(false) {
				a.silent = 0
			}
			// Beats are counted, not time: a process that was suspended itself has not listened.
			if a.silent++; !a.paused && time.Duration(a.silent)*beat >= a.with.silence {
				return launch.WithCode(launch.ExitUnavailable, fmt.Errorf("remote: no sign of life from the caller for %v", a.with.silence))
			}
		case sig := <-sigs:
			switch {
			case sig == syscall.SIGTERM:
				return launch.WithCode(launch.ExitStopped, errors.New("remote: ended by SIGTERM"))
			case sig == syscall.SIGUSR1 && a.hosted != nil:
				a.hosted.local.Signal(syscall.SIGUSR1)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// handle handles one frame.
func (a *agent) handle(ctx context.Context, f frame) error {
	switch f.kind {
	case kindHello:
		var h hello
		if err := f.decode(&h); err != nil {
			return err
		}
		if h.Version != Version {
			return fmt.Errorf("%w: version %d of the caller, this is %d", errFrame, h.Version, Version)
		}
	case kindBeat:
	case kindJob:
		var j job
		if err := f.decode(&j); err != nil {
			return err
		}
		a.start(ctx, j)
	case kindSignal:
		var s signal
		if err := f.decode(&s); err != nil {
			return err
		}
		sig := unix.SignalNum(s.Name)
		a.paused = sig == syscall.SIGSTOP
		if sig != 0 && a.hosted != nil {
			a.hosted.local.Signal(sig)
		}
	case kindFinish:
		if c := a.hosted; c != nil {
			c.finish.Do(func() { go c.done(a.with.Sweep) })
		}
	default:
		return fmt.Errorf("%w: a frame of kind %d from the caller", errFrame, f.kind)
	}
	return nil
}

// start starts the ranks of a job.
func (a *agent) start(ctx context.Context, j job) {
	fail := func(code int, err error) {
		a.box.send(message(kindStarted, started{Error: err.Error(), Code: code}))
	}
	if a.hosted != nil && !a.hosted.finished.Load() {
		fail(launch.ExitInternal, errors.New("remote: another job runs under this agent"))
		return
	}
	p := j.Part
	if p.First.LocalWorld < 1 || p.First.LocalWorld > 4096 || len(p.Argv) == 0 {
		fail(launch.ExitUsage, errors.New("remote: no ranks or no program to start"))
		return
	}
	p.Env = merge(os.Environ(), p.Env)
	if p.Dir != "" {
		if err := goodDir(p.Dir); err != nil {
			fail(launch.ExitNoInput, fmt.Errorf("working directory: %w\nhint: it must exist on every host; choose another with --wdir", err))
			return
		}
	}
	c := &hostedJob{local: launch.Local{As: j.Host}, box: a.box, grace: j.Grace, busy: map[int]map[int]bool{}}
	c.left.Store(int64(p.First.LocalWorld))
	a.hosted = c
	if err := c.local.Start(ctx, p, c); err != nil {
		c.finished.Store(true)
		a.hosted = nil
		fail(launch.ExitCode(err), err)
		return
	}
	a.box.send(message(kindStarted, started{PIDs: c.local.PIDs()}))
}

// merge is an environment with the variables of another one, which win.
func merge(base, over []string) []string {
	won := map[string]bool{}
	for _, kv := range over {
		name, _, _ := strings.Cut(kv, "=")
		won[name] = true
	}
	var out []string
	for _, kv := range base {
		if name, _, _ := strings.Cut(kv, "="); !won[name] {
			out = append(out, kv)
		}
	}
	return append(out, over...)
}

// end ends the ranks when the caller is gone: it asks them to stop, and kills them after the grace time.
func (a *agent) end() {
	a.responder.close()
	c := a.hosted
	if c == nil || c.finished.Load() {
		return
	}
	c.local.Signal(syscall.SIGTERM)
	c.local.Signal(syscall.SIGCONT) // a suspended process does not hear it
	for until := time.Now().Add(c.grace); c.local.Running() && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	c.finish.Do(func() { c.done(a.with.Sweep) })
	for until := time.Now().Add(10 * time.Second); !c.finished.Load() && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
}
