package shm

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Config of one rank of a group.
type Config struct {
	Job  string // the same on all ranks, different from all other jobs of this user on the machine
	Rank int
	Size int
	Dir  string // a directory in memory; "" = /dev/shm
	// Timeout bounds the wait of Join for the other ranks if its context has no deadline; 0 means 2 minutes.
	Timeout time.Duration
	// Late is called if other ranks are missing after a few seconds, with those that this rank knows to be missing; may be nil. Use it to report what the
	// startup waits for.
	Late func(missing []int)

	lateAfter time.Duration // for tests; 0 = lateAfter

	fileHeap bool // for tests: pretend that the anonymous heap cannot be opened
}

const prefix = "gotrain-"

// lateAfter is when a missing rank is reported: ranks of one launcher start together.
const lateAfter = 3 * time.Second

// late reports missing ranks once.
func (c *Config) late(begin time.Time, missing func() []int) {
	if c.Late != nil && time.Since(begin) > cmp.Or(c.lateAfter, lateAfter) {
		c.Late(missing())
		c.Late = nil
	}
}

// fill checks a configuration and sets defaults.
func (c *Config) fill() error {
	if err := checkSize(c.Rank, c.Size); err != nil {
		return err
	}
	if c.Job == "" || len(c.Job) > 128 || strings.ContainsAny(c.Job, "/\x00") || strings.HasPrefix(c.Job, ".") {
		return fmt.Errorf("comm: shm: %q is not a valid job id\nhint: use 1 to 128 characters without /, not beginning with a dot", c.Job)
	}
	if c.Dir == "" {
		c.Dir = "/dev/shm"
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Minute
	}
	return nil
}

// Join meets the other ranks of the job and returns when all have joined. If ctx or the timeout expires first, the error is a
// *comm.TimeoutError that names the missing ranks. Rank 0 creates the file and removes leftovers of dead jobs.
func Join(ctx context.Context, cfg Config) (*Comm, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if !crossProcess {
		return nil, errors.New("comm: shm: ranks in several processes need Linux")
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	c, err := cfg.join(ctx)
	if err != nil {
		forget(cfg)    // remove any refusal left for this rank
		Sweep(cfg.Dir) // if rank 0 has died, the last rank to give up removes its file
		return nil, fmt.Errorf("comm: shm: rank %d of job %s: %w", cfg.Rank, cfg.Job, err)
	}
	return c, nil
}

func (c *Config) join(ctx context.Context) (*Comm, error) {
	begin := time.Now()
	var f files
	var err error
	over := func(error) {}
	if c.Rank == 0 {
		Sweep(c.Dir)
		f, over, err = create(*c)
	} else {
		f, err = attach(ctx, *c, begin)
	}
	if err != nil {
		return nil, err
	}
	if c.fileHeap && f.heap != f.control {
		closeFD(f.heap)
		f.heap = -1
	}
	group, err := enter(f, c.Rank, c.Size)
	if err == nil {
		err = group.meet(ctx, c, begin)
	}
	if err != nil {
		tell := err
		if ctx.Err() != nil { // no further rank is expected
			tell = nil
		}
		over(tell) // first, so that ranks that see the abort find their refusal
		if group != nil {
			group.Abort(err)
			group.Close()
		}
		return nil, err
	}
	over(nil) // all ranks have the file open
	group.dir = c.Dir
	return group, nil
}

// absent returns the ranks that have not joined.
func (c *Comm) absent() (ranks []int) {
	for r, b := range c.v.block {
		if atomic.LoadUint32(&b.state) == absent {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// NewLocal creates a group of n ranks within this process: element r is the communicator of rank r.
func NewLocal(n int) ([]comm.Communicator, error) {
	if err := checkSize(0, n); err != nil {
		return nil, err
	}
	fd, err := anonymous()
	if err != nil {
		return nil, fmt.Errorf("comm: shm: %w", err)
	}
	defer closeFD(fd)
	if err := initialise(files{fd, fd}, n); err != nil {
		return nil, fmt.Errorf("comm: shm: %w", err)
	}
	group := make([]comm.Communicator, 0, n)
	for r := range n {
		own, err := reopen(fd)
		if err == nil {
			err = lock(own, r)
		}
		var c *Comm
		if err == nil {
			c, err = enter(files{own, own}, r, n)
		}
		if err != nil {
			if c != nil {
				c.Close()
			}
			for _, c := range group {
				c.Close()
			}
			return nil, fmt.Errorf("comm: shm: rank %d: %w", r, err)
		}
		group = append(group, c)
	}
	for _, c := range group {
		c.(*Comm).settle()
	}
	return group, nil
}

// files holds the descriptors of a rank: the control part, whose locks show which ranks are alive, and the heap. The heap is an anonymous file
// if possible, because /dev/shm may be small (64 MiB in a container); otherwise it follows the control part in the same file.
type files struct{ control, heap int }

func (f files) close() {
	if f.heap != f.control && f.heap >= 0 {
		closeFD(f.heap)
	}
	closeFD(f.control)
}

// initialise writes the header of a new file.
func initialise(f files, size int) error {
	fd := f.control
	l := layoutOf(size)
	// Everything that ranks touch without reserving it: a rank may give up, and ring the bells of all pairs, before any other gets this far.
	for _, part := range [][2]int64{{0, l.slots}, {l.pairs, l.rings}} {
		if err := reserve(fd, part[0], part[1]-part[0]); err != nil {
			return spaceError(fd, part[1]-part[0], err)
		}
	}
	m, err := mapRange(fd, 0, l.end)
	if err != nil {
		return err
	}
	defer m.unmap()
	v := viewOf(m.mem, size)
	v.hdr.version, v.hdr.size, v.hdr.next = version, uint32(size), uint64(l.end)
	v.block[0].pid = uint32(os.Getpid())
	if f.heap != f.control && f.heap >= 0 {
		if v.hdr.nonce, err = sign(f.heap); err != nil {
			return err
		}
		v.hdr.heapPid, v.hdr.heapFD = uint32(os.Getpid()), int32(f.heap)
	}
	atomic.StoreUint64(&v.hdr.magic, magic)
	return nil
}

// enter maps the control part for a rank that holds its lock, and marks the rank as joined. It takes ownership of f. It may return a Comm even with an
// error: the others wait for this rank, and the Comm is needed to notify them.
func enter(f files, rank, size int) (*Comm, error) {
	fd, l := f.control, layoutOf(size)
	m, err := mapRange(fd, 0, l.end)
	if err != nil {
		f.close()
		return nil, err
	}
	c := newComm(f, m, rank, size)
	if err := reserve(fd, l.slot(rank), 2*slotBytes); err != nil {
		return c, spaceError(fd, 2*slotBytes, err)
	}
	b := c.v.block[rank]
	if f.heap >= 0 {
		b.heap = 1
	}
	b.pid, b.cpus = uint32(os.Getpid()), processors()
	atomic.StoreUint32(&b.state, joined)
	atomic.AddUint32(&c.v.hdr.attached, 1)
	c.v.hdr.ring()
	return c, nil
}

// meet waits until all ranks joined.
func (c *Comm) meet(ctx context.Context, cfg *Config, begin time.Time) error {
	h := c.v.hdr
	for atomic.LoadUint32(&h.attached) < uint32(c.size) {
		g := atomic.LoadUint32(&h.count)
		atomic.AddUint32(&h.sleepers, 1)
		if atomic.LoadUint32(&h.attached) < uint32(c.size) {
			sleepOn(&h.count, g, slice)
		}
		atomic.AddUint32(&h.sleepers, ^uint32(0))
		if atomic.LoadUint32(&h.attached) >= uint32(c.size) {
			break
		}
		if err := c.abortError("join"); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return c.joinError(ctx, begin)
		}
		cfg.late(begin, c.absent)
		for r, b := range c.v.block {
			if atomic.LoadUint32(&b.state) == joined && r != c.rank && !held(c.files.control, r, 1) {
				return &comm.PeerError{Rank: r, Call: "join", Reason: fmt.Sprintf("its process (pid %d) ended", b.pid)}
			}
		}
	}
	c.settle()
	return nil
}

func (c *Comm) joinError(ctx context.Context, begin time.Time) error {
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	return &comm.TimeoutError{Call: "join", After: time.Since(begin), Missing: c.absent()}
}

func spaceError(fd int, want int64, err error) error {
	if !isNoSpace(err) {
		return fmt.Errorf("reserving %d bytes: %w", want, err)
	}
	if free, total := room(fd); total > 0 {
		return fmt.Errorf(
			"no shared memory for %d bytes (%d of %d bytes are free in /dev/shm): %w\n"+
				"hint: give the container more (docker run --shm-size=2g; Kubernetes: an emptyDir of medium Memory at /dev/shm)",
			want,
			free,
			total,
			err,
		)
	}
	return fmt.Errorf(
		"no shared memory for %d bytes: %w\nhint: raise the memory limit of the container, or use a smaller model or fewer ranks",
		want,
		err,
	)
}

// sign writes a random number at the beginning of the heap, so that ranks can verify that they opened the right file.
func sign(fd int) (uint64, error) {
	if err := reserve(fd, 0, pageBytes); err != nil {
		return 0, spaceError(fd, pageBytes, err)
	}
	m, err := mapRange(fd, 0, pageBytes)
	if err != nil {
		return 0, err
	}
	defer m.unmap()
	var b [8]byte
	rand.Read(b[:])
	b[0] |= 1 // not zero
	copy(m.mem, b[:])
	return binary.NativeEndian.Uint64(b[:]), nil
}
