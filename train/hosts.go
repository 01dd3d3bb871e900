package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/comm/nodes"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/comm/tcp"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
	"github.com/gotrain/gotrain/ddp/meet/find"
)

// meeting is the communicator of ranks that met over a network. Closing it leaves the job.
type meeting struct {
	comm.Communicator
	group  *meet.Group
	roster *meet.Roster
	fold   string

	network link.Cluster // no hosts: they have different numbers of ranks
}

var (
	_ comm.Brancher  = (*meeting)(nil)
	_ comm.Watcher   = (*meeting)(nil)
	_ comm.Describer = (*meeting)(nil)
	_ comm.Leveled   = (*meeting)(nil)
)

// Nodes returns the host of each rank, if the communicator can work level by level.
func (m *meeting) Nodes() []int {
	if l, ok := m.Communicator.(comm.Leveled); ok {
		return l.Nodes()
	}
	return nil
}

// Chain makes groups of levels.
func (m *meeting) Chain(ctx context.Context, spans ...comm.Span) ([]comm.Communicator, error) {
	return comm.Chain(ctx, m.Communicator, spans...)
}

// Branch makes a second group.
func (m *meeting) Branch(ctx context.Context) (comm.Communicator, error) {
	return comm.Branch(ctx, m.Communicator)
}

// Check asks the communicator.
func (m *meeting) Check() error { return comm.Check(m.Communicator) }

// Describe asks the communicator.
func (m *meeting) Describe() []comm.Level { return comm.Describe(m.Communicator) }

// Network says how the ranks are spread over hosts, and what the link between them gives.
func (m *meeting) Network() link.Cluster { return m.network }

// Fold is the order of sums.
func (m *meeting) Fold() string { return m.fold }

// Close closes the communicator and leaves the job.
func (m *meeting) Close() error { return errors.Join(m.Communicator.Close(), m.group.Close()) }

// The numbers of connections: groups of different purposes do not share them.
const (
	streamPeers    = 0
	streamMessages = 64
)

// hosts is the opening of a communicator over several hosts.
type hosts struct {
	id     launch.Identity
	links  Links
	group  *meet.Group
	roster *meet.Roster
	place  meet.Place
	link   link.Link // between nodes, the same on all ranks
	opened []func() error
}

// meetHosts connects ranks that may be on several hosts. An error of one rank ends the start on all.
func meetHosts(ctx context.Context, id launch.Identity, l Links, lookup launch.Lookup) (comm.Communicator, error) {
	h := &hosts{id: id, links: l}
	var err error
	if h.place, err = find.Where(id, lookup); err != nil {
		return nil, err
	}
	if w := h.place.Warning(); w != "" && id.Rank == 0 {
		slog.Warn(w)
	}
	first := sync.OnceValue(func() string { return "\n" + announced(id, lookup) })
	said := false
	h.group, err = meet.Join(ctx, meet.Config{
		Rank: id.Rank, World: id.World, LocalRank: id.LocalRank, LocalWorld: id.LocalWorld, Node: id.NodeRank, Nodes: id.Nodes,
		Job: id.JobID, Generation: id.Restart, Place: h.place, Interface: l.Interface, Ports: l.Ports, Version: Version(),
		Heartbeat: l.Heartbeat, Timeouts: meet.Timeouts{Start: l.Start}, Lookup: lookup,
		Waiting: func(sentence string) {
			if !said && !strings.Contains(sentence, "\nhint: ") {
				sentence += first()
			}
			said = true
			slog.Warn(sentence)
		},
	})
	if err != nil {
		return nil, unavailable(err)
	}
	h.roster = h.group.Roster()
	ctx, stop := untilDown(ctx, h.group)
	defer stop()
	c, err := h.open(ctx)
	if err != nil {
		if h.group.Err() == nil {
			h.group.Abort(err)
		}
		for i := len(h.opened) - 1; i >= 0; i-- {
			_ = h.opened[i]() // another error is being reported
		}
		_ = h.group.Close()
		return nil, unavailable(err)
	}
	return c, nil
}

// unavailable gives an error of the start its exit code, unless it has one.
func unavailable(err error) error {
	if launch.ExitCode(err) != launch.ExitTraining || errors.Is(err, context.Canceled) {
		return err
	}
	return launch.WithCode(launch.ExitUnavailable, err)
}

// untilDown is a context that ends when the job has failed, with the first cause.
func untilDown(ctx context.Context, g *meet.Group) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-g.Down():
			cancel(g.Err())
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		wg.Wait()
	}
}

// open chooses the transport. All ranks choose the same, because they decide by the roster and by links that they have compared.
func (h *hosts) open(ctx context.Context) (comm.Communicator, error) {
	if err := h.agree(ctx); err != nil {
		return nil, err
	}
	n := h.roster.Nodes()
	switch {
	case n > 1 && h.links.Transport == "shm":
		return nil, launch.WithCode(launch.ExitUnavailable, fmt.Errorf("the transport shm needs all ranks on one host, but they are on %d: %s\n"+
			"hint: set comm.transport to auto", n, h.where()))
	case h.links.Transport == "tcp", n == h.id.World:
		return h.flat(ctx)
	case n == 1:
		return h.shared(ctx)
	}
	return h.levels(ctx)
}

// agree compares what ranks must have in common before they connect.
func (h *hosts) agree(ctx context.Context) error {
	l := h.links
	mine := fmt.Sprintf("transport %s, topology %s, %d streams", or(l.Transport, "auto"), or(l.Topology, "auto"), max(1, l.Streams))
	all, err := h.group.Exchange(ctx, "comparing the links of the ranks", []byte(mine))
	if err != nil {
		return err
	}
	for r, its := range all {
		if string(its) != string(all[0]) {
			return launch.WithCode(launch.ExitInternal, fmt.Errorf("ranks disagree on how they exchange data: %s has %s, %s has %s\n"+
				"hint: give all ranks the same recipe and the same variables", h.roster.Name(0), all[0], h.roster.Name(r), its))
		}
	}
	return nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// shared makes a communicator in shared memory: the ranks found out that they are on one machine.
func (h *hosts) shared(ctx context.Context) (comm.Communicator, error) {
	c, err := h.inner(ctx)
	if err != nil {
		return nil, err
	}
	if h.id.Rank == 0 {
		slog.Info(fmt.Sprintf("%d ranks on 1 host share memory; they met through %s", h.id.World, h.place.How))
	}
	return h.meeting(c), nil
}

// meeting is what the start makes of a communicator.
func (h *hosts) meeting(c comm.Communicator) *meeting {
	m := &meeting{Communicator: c, group: h.group, roster: h.roster, fold: comm.Fold(c), network: h.network()}
	if t, err := link.ParseTopology(or(h.links.Topology, "auto")); err == nil && t == link.Ring && c.Transport() != "shm" {
		m.fold += "; between hosts by a ring"
	}
	return m
}

// flat makes one group over TCP.
func (h *hosts) flat(ctx context.Context) (comm.Communicator, error) {
	cfg, err := h.tcp(h.group)
	if err != nil {
		return nil, err
	}
	c, err := tcp.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h.link = c.Link()
	h.say()
	return h.meeting(c), nil
}

func (h *hosts) tcp(c tcp.Control) (tcp.Config, error) {
	t, err := link.ParseTopology(or(h.links.Topology, "auto"))
	return tcp.Config{Control: c, Topology: t, Streams: h.links.Streams}, err
}

// inner makes the group of the ranks of this node.
func (h *hosts) inner(ctx context.Context) (comm.Communicator, error) {
	me := h.roster.Members[h.id.Rank]
	ranks := h.roster.OnNode(me.Node)
	if len(ranks) == 1 { // a group of one for its memory, which lies outside of Go's heap
		g, err := shm.NewLocal(1)
		if err != nil {
			return nil, err
		}
		h.opened = append(h.opened, g[0].Close)
		return g[0], nil
	}
	name := strings.NewReplacer("/", "_", "\x00", "_").Replace(h.roster.Job)
	if h.roster.Nonce != "" { // another job of this user, with the same name, may run on this host
		name = h.roster.Nonce + "-" + name
	}
	c, err := shm.Join(ctx, shm.Config{Job: fmt.Sprintf("node%d-%d-%.80s", me.Node, h.roster.Generation, name), Rank: me.LocalRank, Size: len(ranks)})
	if err != nil {
		return nil, fmt.Errorf("%s cannot share memory with %s: %w", h.roster.Name(h.id.Rank), meet.Ranks(ranks), err)
	}
	h.opened = append(h.opened, c.Close)
	return c, nil
}

// levels makes a group in each node, rails between them, and the communicator over both.
func (h *hosts) levels(ctx context.Context) (comm.Communicator, error) {
	cfg := nodes.Config{Rank: h.id.Rank, NodeOf: h.roster.NodeOf(), JobRanks: true, Control: h.group}
	var err error
	if cfg.Inner, err = h.inner(ctx); err != nil {
		return nil, err
	}
	rail, err := nodes.Rail(h.id.Rank, cfg.NodeOf)
	if err != nil {
		return nil, err
	}
	t, err := h.tcp(bystander{h.group})
	if err != nil {
		return nil, err
	}
	connect := func(what string, t tcp.Config) (*tcp.Comm, error) {
		c, err := tcp.Open(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", what, h.roster.Name(h.id.Rank), err)
		}
		h.opened = append(h.opened, c.Close)
		return c, nil
	}
	// The first rail measures the link, undisturbed by the others, which take over what rank 0 found.
	leads := h.roster.Members[h.id.Rank].LocalRank == 0
	t.Ranks, t.Stream = rail, streamPeers
	var found link.Link
	if leads {
		c, err := connect("connecting the first ranks of all hosts", t)
		if err != nil {
			return nil, err
		}
		cfg.Outer, found = c, c.Link()
	}
	if err := h.shareLink(ctx, found); err != nil {
		return nil, err
	}
	t.Link = &h.link
	if rail != nil && !leads {
		if cfg.Outer, err = connect("connecting the ranks with the same local rank", t); err != nil {
			return nil, err
		}
	}
	t.Ranks, t.Stream = nil, streamMessages // for statistics of ranks, which go to rank 0, and for the user's messages
	if cfg.Flat, err = connect("connecting all ranks", t); err != nil {
		return nil, err
	}
	cfg.Small = oneTrip(h.link)
	c, err := nodes.New(cfg)
	if err != nil {
		return nil, err
	}
	h.say()
	return h.meeting(c), nil
}

// shareLink gives all ranks the link that rank 0 has found.
func (h *hosts) shareLink(ctx context.Context, mine link.Link) error {
	text, err := mine.MarshalText()
	if err != nil {
		return err
	}
	all, err := h.group.Exchange(ctx, "sharing the link that rank 0 has measured", text)
	if err != nil {
		return err
	}
	return h.link.UnmarshalText(all[0])
}

// oneTrip is up to how many bytes a node sends at once to save a second trip: about as many as pass in the time of one, twice, because half of them would be
// sent anyway.
func oneTrip(l link.Link) int64 {
	const least, most = 4 << 10, 256 << 10
	return max(least, min(most, int64(2*l.Latency.Seconds()*l.Bandwidth)))
}

// bystander is the control of a group that is only a part of the job's communicator: it does not count the calls of the job.
type bystander struct{ *meet.Group }

// Progress does nothing.
func (bystander) Progress(int64) {}
