package remote

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// link is a running agent, seen from the caller.
type link struct {
	host  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	errs  *stderr
	box   *outbox
	heard atomic.Bool

	mu    sync.Mutex
	asked uint32
	asks  map[uint32]chan Answer
	job   *remoteJob

	once sync.Once
	dead chan struct{}
	err  error // why it is dead
	gone chan struct{}
}

// alive reports whether the channel works.
func (l *link) alive() bool {
	select {
	case <-l.dead:
		return false
	default:
		return true
	}
}

// why is the reason for the end of the channel.
func (l *link) why() error {
	<-l.dead
	return l.err
}

// fail ends the channel: ssh is killed, and the agent kills the ranks when it sees the end.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.dead)
		l.box.fail(err)
		l.stdin.Close()
		_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
		l.mu.Lock()
		j := l.job
		l.mu.Unlock()
		if j != nil {
			j.lost(err)
		}
	})
}

// read handles what the agent sends.
func (l *link) read(r *bufio.Reader) {
	for {
		f, err := readFrame(r)
		l.heard.Store(true)
		if err == nil {
			err = l.handle(f)
		}
		if err != nil {
			l.fail(hintedLost(l.explain(err)))
			return
		}
	}
}

func (l *link) handle(f frame) error {
	l.mu.Lock()
	j := l.job
	l.mu.Unlock()
	switch f.kind {
	case kindBeat:
	case kindAnswer:
		var a Answer
		if err := f.decode(&a); err != nil {
			return err
		}
		l.mu.Lock()
		c := l.asks[a.ID]
		delete(l.asks, a.ID)
		l.mu.Unlock()
		if c != nil {
			c <- a
		}
	default:
		if j == nil {
			return nil // the last words of a job that is over
		}
		return j.handle(f)
	}
	return nil
}

// print prints the output of the job until the last, and gives credit for more.
func (l *link) print(j *remoteJob) {
	defer close(j.finished)
	for {
		j.queueMu.Lock()
		all, over := j.queue, j.over
		j.queue = nil
		j.queueMu.Unlock()
		for _, f := range all {
			if f.kind == kindFinished {
				return
			}
			rank, stderr, text, _ := f.lines()
			if f.kind == kindOutput {
				j.events.Output(rank, stderr, text)
			} else {
				j.events.Progress(rank, text)
			}
			l.box.send(frame{kindCredit, binary.LittleEndian.AppendUint32(nil, uint32(len(f.payload)))})
		}
		if over && len(all) == 0 {
			return
		}
		if len(all) == 0 {
			<-j.more
		}
	}
}

// begun marks the job as started, unless the channel is dead.
func (l *link) begun(j *remoteJob) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running = l.alive()
	return j.running
}

// ask asks the agent; body follows the question.
func (l *link) ask(ctx context.Context, q Question, body io.Reader) (Answer, error) {
	c := make(chan Answer, 1)
	l.mu.Lock()
	l.asked++
	q.ID = l.asked
	l.asks[q.ID] = c
	l.mu.Unlock()
	l.box.send(message(kindAsk, q))
	if body != nil {
		if err := l.sendFile(body); err != nil {
			return Answer{}, err
		}
	}
	select {
	case a := <-c:
		return a, nil
	case <-l.dead:
		return Answer{}, l.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// start starts ranks.
func (l *link) start(ctx context.Context, what job, e launch.Events) error {
	j := &remoteJob{events: e, first: what.Part.First.Rank, n: what.Part.First.LocalWorld, started: make(chan started, 1),
		ended: map[int]bool{}, more: make(chan struct{}, 1), finished: make(chan struct{})}
	l.mu.Lock()
	l.job = j
	l.mu.Unlock()
	go l.print(j)
	l.box.send(message(kindJob, what))
	var s started
	select {
	case s = <-j.started:
	case <-l.dead:
		s = started{Error: l.err.Error(), Code: launch.ExitUnavailable}
	case <-ctx.Done():
		l.fail(ctx.Err()) // nobody knows whether ranks run there
		s = started{Error: ctx.Err().Error(), Code: launch.ExitTimeout}
	}
	if s.Error == "" && l.begun(j) {
		return nil
	}
	if s.Error == "" {
		s = started{Error: l.why().Error(), Code: launch.ExitUnavailable}
	}
	l.mu.Lock()
	l.job = nil
	l.mu.Unlock()
	j.stop()
	<-j.finished
	return launch.WithCode(s.Code, errors.New(s.Error))
}

// jobRuns reports whether something of the job is left.
func (l *link) jobRuns() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.job != nil && !l.job.quiet.Load()
}

// finish ends the job and waits for the last output.
func (l *link) finish() {
	l.mu.Lock()
	j := l.job
	l.mu.Unlock()
	if j == nil {
		return
	}
	l.box.send(frame{kind: kindFinish})
	<-j.finished // also when the channel dies
	l.mu.Lock()
	l.job = nil
	l.mu.Unlock()
}

// close ends the agent in order, or else by force.
func (l *link) close() {
	l.box.send(frame{kind: kindBye})
	l.box.close()
	select {
	case <-l.box.done:
	case <-l.dead:
	case <-time.After(patience):
	}
	l.stdin.Close()
	select {
	case <-l.gone:
	case <-time.After(5 * time.Second):
	}
	l.fail(errors.New("closed"))
	select {
	case <-l.gone:
	case <-time.After(patience): // a process that even SIGKILL does not end at once
	}
}
