package remote

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
)

// hostedJob is the ranks of one job on the side of the agent. It passes on what happens to them.
type hostedJob struct {
	local    launch.Local
	box      *outbox
	grace    time.Duration
	left     atomic.Int64 // ranks that have not ended
	quiet    atomic.Bool
	finish   sync.Once
	finished atomic.Bool

	mu   sync.Mutex
	busy map[int]map[int]bool // processes that said that they are busy, by rank
}

// done ends what is left of the job.
func (h *hostedJob) done(sweep func()) {
	h.local.Finish()
	if sweep != nil {
		sweep()
	}
	h.finished.Store(true)
	h.box.put(frame{kind: kindFinished}, 0)
}

func (h *hostedJob) Output(rank int, stderr bool, lines []byte) {
	for len(lines) > 0 {
		n := min(len(lines), maxOutput)
		if n < len(lines) { // at the end of a line; a single line is shorter
			if i := strings.LastIndexByte(string(lines[:n]), '\n'); i >= 0 {
				n = i + 1
			}
		}
		h.box.put(output(rank, stderr, lines[:n]), strings.Count(string(lines[:n]), "\n"))
		lines = lines[n:]
	}
}

// Progress is only shown if the reader keeps up.
func (h *hostedJob) Progress(rank int, text []byte) {
	if h.box.idle() && len(text) <= maxOutput {
		f := output(rank, false, text)
		f.kind = kindProgress
		h.box.put(f, 0)
	}
}

func (h *hostedJob) Record(rank int, r launch.Record, age time.Duration) {
	h.mu.Lock()
	switch {
	case r.Busy != "":
		if h.busy[rank] == nil {
			h.busy[rank] = map[int]bool{}
		}
		h.busy[rank][r.PID] = true
	case r.Idle:
		delete(h.busy[rank], r.PID)
	}
	h.mu.Unlock()
	h.box.send(message(kindRecord, record{rank, r, age}))
}

func (h *hostedJob) Exit(o launch.Outcome, _ time.Duration) {
	e := exit{Rank: o.Rank, PID: o.PID, Code: o.Code}
	if o.Signal != 0 {
		e.Signal = unix.SignalName(o.Signal)
	}
	h.box.send(message(kindExit, e))
	if h.left.Add(-1) == 0 {
		go h.settle()
	}
}

// settle waits until nothing of the job runs any more.
func (h *hostedJob) settle() {
	for h.local.Running() && !h.finished.Load() {
		time.Sleep(20 * time.Millisecond)
	}
	h.quiet.Store(true)
	h.box.send(frame{kind: kindQuiet})
}

func (h *hostedJob) Lost(error) {} // this machine cannot be lost to itself

func (h *hostedJob) Say(text string) { h.box.send(frame{kindSay, []byte(text)}) }

// check tells the caller of processes that died while they were busy.
func (h *hostedJob) check() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for rank, pids := range h.busy {
		for pid := range pids {
			if !h.local.Alive(pid) {
				delete(pids, pid)
				h.box.send(message(kindRecord, record{rank, launch.Record{PID: pid, Time: time.Now(), Idle: true}, 0}))
			}
		}
	}
}
