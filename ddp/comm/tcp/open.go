package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math"
	"math/bits"
	"net"
	"slices"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/npu"
)

// Open makes the group. All its ranks call it at the same point.
func Open(ctx context.Context, cfg Config) (*Comm, error) { return open(ctx, cfg, nil) }

func open(ctx context.Context, cfg Config, trunk *Comm) (*Comm, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if cfg.Control == nil || cfg.Streams < 0 || cfg.Streams > 64 || cfg.Topology > link.Ring {
		return nil, fmt.Errorf("comm: tcp: wrong configuration: control %v, %d streams, topology %v", cfg.Control != nil, cfg.Streams, cfg.Topology)
	}
	if cfg.Link != nil {
		if err := cfg.Link.Valid(); err != nil {
			return nil, fmt.Errorf("comm: tcp: wrong configuration: %w", err)
		}
	}
	cfg.Streams = max(cfg.Streams, 1)
	members := cfg.Control.Roster().Members
	all := cfg.Ranks == nil
	if all {
		for r := range members {
			cfg.Ranks = append(cfg.Ranks, r)
		}
	}
	me := slices.Index(cfg.Ranks, cfg.Control.Rank())
	if me < 0 {
		return nil, fmt.Errorf("comm: tcp: rank %d is not in the group of ranks %v", cfg.Control.Rank(), cfg.Ranks)
	}
	for i, r := range cfg.Ranks {
		if r < 0 || r >= len(members) || slices.Index(cfg.Ranks, r) != i {
			return nil, fmt.Errorf("comm: tcp: ranks %v do not make a group in a job of %d", cfg.Ranks, len(members))
		}
	}
	c := newComm(cfg, me)
	c.trunk, c.reports = trunk, trunk == nil && len(cfg.Ranks) == len(members)
	if err := c.connect(ctx); err != nil {
		c.release()
		return nil, err
	}
	var mine link.Link
	if cfg.Link == nil && c.size > 1 {
		l, err := c.measure(ctx)
		if err != nil {
			c.release()
			return nil, fmt.Errorf("comm: tcp: rank %d: measuring the link to rank %d: %w", c.jobs[c.rank], c.jobs[(c.rank+1)%c.size], err)
		}
		mine = l
	} else if cfg.Link != nil {
		mine = *cfg.Link
	}
	c.wg.Add(2)
	go c.worker()
	go c.guard()
	if err := c.agree(ctx, mine); err != nil {
		c.mu.Lock()
		if c.broken == nil {
			c.broken = err // Close without a word
		}
		c.mu.Unlock()
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func newComm(cfg Config, me int) *Comm {
	c := &Comm{cfg: cfg, control: cfg.Control, rank: me, size: len(cfg.Ranks), jobs: cfg.Ranks, base: time.Now(), crowded: true, number: -1, bell: -1,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), waste: make([]byte, wasteSize)}
	c.idle.L = &c.mu
	c.Issue = c.issue
	c.peers, c.srcs = make([]*peer, c.size), make([]unsafe.Pointer, 0, c.size)
	c.vigil.seen = make([]pulse, c.size)
	for r := range c.size {
		c.everyone = append(c.everyone, r)
	}
	for d := 1; d < c.size; d++ {
		r := (me + d) % c.size
		c.peers[r] = &peer{rank: r, job: cfg.Ranks[r]}
		c.ahead = append(c.ahead, c.peers[r])
	}
	c.others = c.ahead
	c.behind = slices.Clone(c.ahead)
	slices.Reverse(c.behind)
	c.crossover, c.small, c.large = math.MaxInt64, link.Exchange, link.Direct // until agreed
	return c
}

// connect makes the connections, and memory for what comes over them.
func (c *Comm) connect(ctx context.Context) (err error) {
	if c.bell, err = newBell(); err != nil {
		return fmt.Errorf("comm: tcp: rank %d: an event descriptor: %w", c.jobs[c.rank], err)
	}
	if c.size == 1 {
		return nil
	}
	whole, mem, err := mapMemory((c.size - 1) * pieceBytes)
	if err != nil {
		return fmt.Errorf("comm: tcp: rank %d: %d bytes of memory: %w", c.jobs[c.rank], (c.size-1)*pieceBytes, err)
	}
	c.mem = whole
	for i, p := range c.others {
		p.stage = addressOf(mem[i*pieceBytes:])
	}
	for s := range c.cfg.Streams {
		conns, err := c.control.Connect(ctx, c.cfg.Stream+uint32(s), c.jobs)
		if err != nil {
			return err
		}
		for r, conn := range conns {
			if err == nil && r != c.rank {
				err = c.adopt(c.peers[r], conn)
			}
			if conn != nil {
				conn.Close() // the link has a descriptor of its own, which Go's poller does not watch
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// adopt makes a link of a connection.
func (c *Comm) adopt(p *peer, conn *net.TCPConn) error {
	if conn == nil {
		return fmt.Errorf("comm: tcp: rank %d got no connection to rank %d", c.jobs[c.rank], p.job)
	}
	fd, err := duplicate(conn)
	if err != nil {
		return fmt.Errorf("comm: tcp: rank %d: the connection to rank %d: %w", c.jobs[c.rank], p.job, err)
	}
	p.lines = append(p.lines, &line{p: p, index: len(p.lines), fd: fd})
	m := c.control.Roster().Members
	local := m[p.job].Machine == m[c.jobs[c.rank]].Machine
	congestion, err := setOptions(fd, local)
	if err != nil {
		return fmt.Errorf("comm: tcp: rank %d: the connection to rank %d: %w", c.jobs[c.rank], p.job, err)
	}
	if c.address == "" || !local {
		c.address, c.congestion = endpoint(conn.LocalAddr()), congestion
	}
	return nil
}

// settings is what ranks tell each other when the group opens; it has a fixed size.
type settings struct {
	Topology, Streams int64
	Measured          int64
	Latency, PerPeer  int64
	Bandwidth, Reduce float64
	Processors        [16]uint64
}

// agree compares settings, and settles what depends on all ranks: all decide from the same numbers, so they decide the same.
func (c *Comm) agree(ctx context.Context, mine link.Link) error {
	s := settings{Topology: int64(c.cfg.Topology), Streams: int64(c.cfg.Streams), Latency: int64(mine.Latency), PerPeer: int64(mine.PerPeer),
		Bandwidth: mine.Bandwidth, Reduce: mine.Reduce, Processors: processors()}
	if c.cfg.Link == nil {
		s.Measured = 1
	}
	in, err := binary.Append(nil, binary.LittleEndian, s)
	if err != nil {
		return err
	}
	out := make([]byte, len(in)*c.size)
	if err := comm.Wait(ctx)(c.AllGather(ctx, comm.Host(out, npu.U8), comm.Host(in, npu.U8))); err != nil {
		return fmt.Errorf("comm: tcp: rank %d: the first exchange of the group: %w", c.jobs[c.rank], err)
	}
	table := make([]settings, c.size)
	if _, err := binary.Decode(out, binary.LittleEndian, table); err != nil {
		return err
	}
	for r, t := range table {
		if z := table[0]; t.Topology != z.Topology || t.Streams != z.Streams || t.Measured != z.Measured {
			return fmt.Errorf("comm: tcp: ranks disagree: rank %d has topology %v, %d streams, a measured link: %v; rank %d has %v, %d, %v"+
				"\nhint: run the same program with the same recipe and the same GOTRAIN_ variables on all ranks", c.jobs[0], link.Topology(z.Topology), z.Streams,
				z.Measured == 1, c.jobs[r], link.Topology(t.Topology), t.Streams, t.Measured == 1)
		}
	}
	c.settle(table)
	c.mu.Lock()
	c.stats, c.wireFrom = comm.Stats{}, c.wire.Load()
	c.mu.Unlock()
	if c.rank == 0 && c.trunk == nil && c.size > 1 && !c.cfg.Topology.Ordered() {
		c.warn("topology ring: its sums differ by rounding from those of the other topologies")
	}
	return nil
}

func (c *Comm) warn(sentence string) {
	if c.cfg.Warn != nil {
		c.cfg.Warn(sentence)
		return
	}
	log.Print("comm: tcp: warning: ", sentence)
}

// together reports whether all ranks of the group are on one machine.
func (c *Comm) together() bool {
	members := c.control.Roster().Members
	return !slices.ContainsFunc(c.jobs, func(job int) bool { return members[job].Machine != members[c.jobs[0]].Machine })
}

// agreed is one link for all: that of the slowest rank, since nobody is done before it. Ranks of one machine have the same link, and where it seems slower
// something else disturbed the measurement: there the best counts.
func agreed(table []settings, together bool) link.Link {
	var l link.Link
	for r, t := range table {
		v := link.Link{Latency: time.Duration(t.Latency), Bandwidth: t.Bandwidth, PerPeer: time.Duration(t.PerPeer), Reduce: t.Reduce}
		switch {
		case r == 0:
			l = v
		case together:
			l.Latency, l.PerPeer = min(l.Latency, v.Latency), min(l.PerPeer, v.PerPeer)
			l.Bandwidth, l.Reduce = max(l.Bandwidth, v.Bandwidth), min(l.Reduce, v.Reduce)
		default:
			l.Latency, l.PerPeer = max(l.Latency, v.Latency), max(l.PerPeer, v.PerPeer)
			l.Bandwidth, l.Reduce = min(l.Bandwidth, v.Bandwidth), max(l.Reduce, v.Reduce)
		}
	}
	return l
}

// settle takes the link of all ranks, and finds out whether this rank may look before it sleeps.
func (c *Comm) settle(table []settings) {
	members := c.control.Roster().Members
	machine := members[c.jobs[c.rank]].Machine
	var union [16]uint64
	ranks, mine := 0, 0
	c.link = agreed(table, c.together())
	for r, t := range table {
		if members[c.jobs[r]].Machine == machine {
			mine++
			for i, w := range t.Processors {
				union[i] |= w
			}
		}
	}
	for _, m := range members {
		if m.Machine == machine {
			ranks++
		}
	}
	n := 0
	for _, w := range union {
		n += bits.OnesCount64(w)
	}
	c.crowded, c.look = crowded(ranks, mine, n, processorsHere()), lookFor
	switch {
	case c.cfg.Look < 0:
		c.crowded = true
	case c.cfg.Look > 0:
		c.crowded, c.look = false, c.cfg.Look
	}
	if c.size > 1 {
		c.crossover = c.link.Crossover(c.cfg.Topology, c.size)
		c.small, c.large = c.link.Choose(c.cfg.Topology, c.size, 0), c.link.Choose(c.cfg.Topology, c.size, math.MaxInt64)
	}
}

// crowded reports whether ranks of this machine share processors. Of those that are in the group it is known which processors they have. If these are not
// all of the machine, ranks are bound, and those of other groups have processors of their own.
func crowded(ranks, inGroup, processors, machine int) bool {
	if inGroup < ranks && processors < machine {
		return inGroup > processors
	}
	return ranks > processors
}
