package remote

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/ddp/launch"
)

// crew is the ranks of one job under an agent. It passes on what happens to them.
type crew struct {
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
func (c *crew) done(sweep func()) {
	c.local.Finish()
	if sweep != nil {
		sweep()
	}
	c.finished.Store(true)
	c.box.put(frame{kind: kindFinished}, 0)
}

func (c *crew) Output(rank int, stderr bool, lines []byte) {
	for len(lines) > 0 {
		n := min(len(lines), maxOutput)
		if n < len(lines) { // at the end of a line; a single line is shorter
			if i := strings.LastIndexByte(string(lines[:n]), '\n'); i >= 0 {
				n = i + 1
			}
		}
		c.box.put(output(rank, stderr, lines[:n]), strings.Count(string(lines[:n]), "\n"))
		lines = lines[n:]
	}
}

// Progress is only shown if the reader keeps up.
func (c *crew) Progress(rank int, text []byte) {
	if c.box.idle() && len(text) <= maxOutput {
		f := output(rank, false, text)
		f.kind = kindProgress
		c.box.put(f, 0)
	}
}

func (c *crew) Record(rank int, r launch.Record, age time.Duration) {
	c.mu.Lock()
	switch {
	case r.Busy != "":
		if c.busy[rank] == nil {
			c.busy[rank] = map[int]bool{}
		}
		c.busy[rank][r.PID] = true
	case r.Idle:
		delete(c.busy[rank], r.PID)
	}
	c.mu.Unlock()
	c.box.send(message(kindRecord, record{rank, r, age}))
}

func (c *crew) Exit(o launch.Outcome, _ time.Duration) {
	e := exit{Rank: o.Rank, PID: o.PID, Code: o.Code}
	if o.Signal != 0 {
		e.Signal = unix.SignalName(o.Signal)
	}
	c.box.send(message(kindExit, e))
	if c.left.Add(-1) == 0 {
		go c.settle()
	}
}

// settle waits until nothing of the job runs any more.
func (c *crew) settle() {
	for c.local.Running() && !c.finished.Load() {
		time.Sleep(20 * time.Millisecond)
	}
	c.quiet.Store(true)
	c.box.send(frame{kind: kindQuiet})
}

func (c *crew) Lost(error) {} // this machine cannot be lost to itself

func (c *crew) Say(text string) { c.box.send(frame{kindSay, []byte(text)}) }

// check tells the caller of processes that died while they were busy.
func (c *crew) check() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for rank, pids := range c.busy {
		for pid := range pids {
			if !c.local.Alive(pid) {
				delete(pids, pid)
				c.box.send(message(kindRecord, record{rank, launch.Record{PID: pid, Time: time.Now(), Idle: true}, 0}))
			}
		}
	}
}
