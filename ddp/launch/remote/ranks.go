package remote

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
)

// remoteJob is the ranks of one job on the side of the caller.
type remoteJob struct {
	events  launch.Events
	first   int
	n       int
	started chan started
	quiet   atomic.Bool

	mu      sync.Mutex
	ended   map[int]bool // ranks
	running bool         // start has returned

	more     chan struct{} // frames to print
	queueMu  sync.Mutex
	queue    []frame
	over     bool
	finished chan struct{} // the last output was printed
}

// handle handles a frame about the job.
func (j *remoteJob) handle(f frame) error {
	switch f.kind {
	case kindStarted:
		var s started
		if err := f.decode(&s); err != nil {
			return err
		}
		select {
		case j.started <- s:
		default:
		}
	case kindOutput, kindProgress:
		rank, _, _, err := f.lines()
		if err != nil || !j.has(rank) {
			return fmt.Errorf("%w: output of rank %d", errFrame, rank)
		}
		return j.push(f)
	case kindFinished:
		return j.push(f)
	case kindSay:
		j.events.Say(string(f.payload))
	case kindQuiet:
		j.quiet.Store(true)
	case kindRecord:
		var r record
		if err := f.decode(&r); err != nil {
			return err
		}
		if !j.has(r.Rank) || r.Age < 0 {
			return fmt.Errorf("%w: record of rank %d", errFrame, r.Rank)
		}
		j.events.Record(r.Rank, r.Record, r.Age)
	case kindExit:
		var e exit
		if err := f.decode(&e); err != nil {
			return err
		}
		return j.exit(e)
	default:
		return fmt.Errorf("%w: a frame of kind %d from the agent", errFrame, f.kind)
	}
	return nil
}

func (j *remoteJob) has(rank int) bool { return rank >= j.first && rank < j.first+j.n }

// push queues output for printing. Credit bounds the queue.
func (j *remoteJob) push(f frame) error {
	j.queueMu.Lock()
	defer j.queueMu.Unlock()
	size := 0
	for _, q := range j.queue {
		size += len(q.payload)
	}
	if size > 4*window {
		return fmt.Errorf("%w: output without credit", errFrame)
	}
	j.queue = append(j.queue, f)
	select {
	case j.more <- struct{}{}:
	default:
	}
	return nil
}

// stop ends print when the channel is dead.
func (j *remoteJob) stop() {
	j.queueMu.Lock()
	j.over = true
	j.queueMu.Unlock()
	select {
	case j.more <- struct{}{}:
	default:
	}
}

// lost ends the job because the channel is dead. If the job has not started, start reports that.
func (j *remoteJob) lost(err error) {
	j.stop()
	j.mu.Lock()
	tell := j.running && len(j.ended) < j.n
	j.mu.Unlock()
	if tell {
		j.events.Lost(err)
	}
}

// exit passes on how a rank ended, once.
func (j *remoteJob) exit(e exit) error {
	j.mu.Lock()
	again := !j.has(e.Rank) || j.ended[e.Rank]
	if !again {
		j.ended[e.Rank] = true
	}
	j.mu.Unlock()
	if again {
		return fmt.Errorf("%w: the end of rank %d", errFrame, e.Rank)
	}
	o := launch.Outcome{Rank: e.Rank, PID: e.PID, Code: e.Code, Signal: signalNum(e.Signal)}
	j.events.Exit(o, 0)
	return nil
}

// signalNum is the signal of a name; 0 for none.
func signalNum(name string) syscall.Signal { return unix.SignalNum(name) }
