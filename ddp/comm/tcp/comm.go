package tcp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"golang.org/x/sys/unix"
)

// Comm is one rank's end of a group.
type Comm struct {
	comm.Collectives
	cfg        Config
	control    Control
	rank, size int
	jobs       []int // ranks of the job, by rank of the group
	reports    bool  // this group's calls are the progress of the rank
	trunk      *Comm // the group that this one was made from, or nil
	branches   uint32
	goodbye    func() // what to close after the connections; nil: nothing

	link       link.Link // of the slowest rank
	crossover  int64     // bytes from which calls take the large algorithm
	small      link.Algorithm
	large      link.Algorithm
	crowded    bool // more ranks than processors: looking would only keep the others from running
	look       time.Duration
	address    string // where data of this rank arrive
	congestion string
	base       time.Time // origin of the clock
	mem        []byte    // of the stages
	bell       int

	heap heap
	wire atomic.Int64
	down atomic.Bool // broken or closed: a cheap flag for the driver

	mu         sync.Mutex
	idle       sync.Cond // driving became false
	head, tail *call     // collectives in order of issue; the first one is active, or next
	fresh      *call     // messages that no lane has got yet
	freshLast  *call
	driving    bool // see Note [driving] in drive.go
	closed     bool
	broken     error // first error
	calls      int64
	habits     [65]int8 // see Note [habit] in call.go
	stats      comm.Stats
	wireFrom   int64 // bytes sent before the group was open

	posted   atomic.Int32 // messages in fresh
	sleeping atomic.Bool  // the driver is in poll
	wake     chan struct{}
	quit     chan struct{}
	wg       sync.WaitGroup

	// Used only by the driver.
	peers    []*peer // by rank; nil for this one
	others   []*peer
	ahead    []*peer // from the next rank on
	behind   []*peer // from the previous rank back
	everyone []int   // all ranks
	two      [2]int
	active   *call
	number   int64 // of the active call, or of the last one
	arrived  int   // peers of which something of the active call has come
	outLeft  int   // pieces to send
	inLeft   int   // pieces to come
	messages int   // in lanes
	owed     int   // frames of lanes without data that are to be sent
	plan     plan
	srcs     []unsafe.Pointer
	dirty    bool // something that a reduction waits for has changed
	looking  bool // the driver looks before it sleeps
	fds      []unix.PollFd
	polled   []*line
	waste    []byte
	vigil    vigil
	mourned  bool
}

var _ comm.Communicator = (*Comm)(nil)

// Rank is this rank's number in the group.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.size }

// Transport is "tcp".
func (c *Comm) Transport() string { return "tcp" }

// Work reports long work to all ranks of the job.
func (c *Comm) Work(what string) comm.Work {
	beat, end := c.control.Work(what)
	return work{beat, end}
}

type work struct{ beat, end func() }

func (w work) Beat() { w.beat() }
func (w work) End()  { w.end() }

// Stats counts finished calls, and all bytes that were sent for them: headers too.
func (c *Comm) Stats() comm.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Wire = c.wire.Load() - c.wireFrom
	return s
}

// Close leaves the group: pending calls fail with comm.ErrClosed, peers that wait for this rank get a *comm.PeerError, memory from Alloc is unmapped. A rank
// whose calls have all completed can close without waiting for others; Close takes as long as its last data need to arrive. Idempotent.
func (c *Comm) Close() error { return c.leave(true) }

// leave closes the group; without a word if orderly is false, as if the process had ended.
func (c *Comm) leave(orderly bool) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.rouse() // before closed forbids it
	c.closed = true
	if c.broken == nil {
		c.broken = comm.ErrClosed
	} else {
		orderly = false
	}
	c.down.Store(true)
	if c.sleeping.Load() {
		ring(c.bell)
	}
	close(c.quit)
	close(c.wake)
	c.mu.Unlock()
	c.wg.Wait()
	c.mu.Lock()
	for c.driving { // a caller in Wait
		c.idle.Wait()
	}
	c.driving = true // and nobody will again
	c.mu.Unlock()
	c.drain()
	if orderly {
		c.farewell()
	}
	c.release()
	return nil
}

// lingering bounds how long Close waits for its last data to arrive.
const lingering = time.Second

// farewell tells the peers that this rank leaves in order, and waits until they have what was sent.
func (c *Comm) farewell() {
	var open []*line
	for _, p := range c.others {
		for _, l := range p.lines {
			if l.left > 0 || l.sendErr != 0 {
				continue // in the middle of a frame of a call that failed
			}
			var b [headerBytes]byte
			h := header{phase: phaseControl, algorithm: controlBye}
			h.put(&b)
			if n, e := sendFrom(l.fd, unsafe.Pointer(&b[0]), len(b)); e == 0 && n == len(b) {
				c.wire.Add(int64(n))
				open = append(open, l)
			}
			endStream(l.fd)
		}
	}
	pause := 20 * time.Microsecond
	for end := time.Now().Add(lingering); len(open) > 0 && time.Now().Before(end); time.Sleep(pause) {
		rest := open[:0]
		for _, l := range open {
			if n := unsent(l.fd); n == 0 || n <= headerBytes+1 && unread(l.fd) == 0 || hungUp(l.fd) {
				continue // what was said last arrives without this process, unless close has reason to reset the connection
			}
			rest = append(rest, l)
		}
		if open = rest; len(open) == 0 {
			return
		}
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// release gives back what the system lent.
func (c *Comm) release() {
	for _, p := range c.others {
		for _, l := range p.lines {
			closeFD(l.fd)
		}
	}
	closeFD(c.bell)
	c.heap.close()
	if c.mem != nil {
		unmapMemory(c.mem)
	}
	if c.goodbye != nil {
		c.goodbye()
	}
}

// Branch makes a second group of the same ranks, with connections of its own. An error of it does not end the job.
func (c *Comm) Branch(ctx context.Context) (comm.Communicator, error) {
	if err := comm.Wait(ctx)(c.Barrier(ctx)); err != nil { // all are here: nobody waits for a connection in vain
		return nil, err
	}
	c.mu.Lock()
	c.branches++
	n := c.branches
	c.mu.Unlock()
	cfg := c.cfg
	cfg.Ranks, cfg.Link = c.jobs, &c.link
	depth := uint32(1)
	for t := c.trunk; t != nil; t = t.trunk {
		depth++
	}
	cfg.Stream = c.cfg.Stream + n*uint32(cfg.Streams)<<(8*depth)
	return open(ctx, cfg, c)
}

var _ comm.Brancher = (*Comm)(nil)

// endpoint is where data of this rank arrive, for people.
func endpoint(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return a.String()
	}
	ifaces, _ := net.Interfaces()
	for _, i := range ifaces {
		addrs, _ := i.Addrs()
		for _, b := range addrs {
			if n, ok := b.(*net.IPNet); ok && n.IP.Equal(t.IP) {
				return t.String() + " (" + i.Name + ")"
			}
		}
	}
	return t.String()
}
