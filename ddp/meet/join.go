package meet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// Join meets the other ranks of the job: rank 0 waits for them, the others look for it. It returns when all are there. The group works until Close, whatever
// becomes of ctx.
func Join(ctx context.Context, cfg Config) (*Group, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	w, err := wishOf(cfg.Interface, cfg.Lookup)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	start, cancel := context.WithTimeout(ctx, cfg.Timeouts.Start)
	defer cancel()
	g := newGroup(&cfg)
	if cfg.Rank == 0 {
		err = g.host(start, &w)
	} else {
		err = g.reachCoordinator(start, &w)
	}
	if err == nil {
		err = g.await(ctx, begun)
	}
	if cfg.Rank == 0 && cfg.Place.Clear != nil {
		cfg.Place.Clear()
	}
	if err != nil {
		g.quit()
		return nil, err
	}
	return g, nil
}

// complete checks the configuration, and fills in what was left out.
func (c *Config) complete() error {
	if c.World < 1 || c.Rank < 0 || c.Rank >= c.World {
		return usage("rank %d of %d ranks\nhint: ranks count from 0", c.Rank, c.World)
	}
	c.Timeouts = c.Timeouts.filled()
	if c.Place.Job != "" {
		c.Job = c.Place.Job
	}
	if c.Host == "" {
		c.Host = hostname()
	}
	if c.Machine == "" {
		c.Machine = Machine()
	}
	if c.tell == 0 {
		c.tell = tell
	}
	if c.grace == 0 {
		c.grace = grace
	}
	if c.network == "" {
		c.network = network()
	}
	if c.Lookup == nil {
		c.Lookup = os.LookupEnv
	}
	warn := func(s string) { slog.Warn(s) }
	if c.Waiting == nil {
		c.Waiting = warn
	}
	if c.Warn == nil {
		c.Warn = warn
	}
	return nil
}

// every returns the pause between beats.
func (c *Config) every() time.Duration {
	if c.Heartbeat <= 0 {
		return defaultBeat
	}
	return c.Heartbeat
}

// secret returns the token of the job. found is what was published beside the address. Without any, the job's id serves: it keeps mistakes out, not strangers.
func (c *Config) secret(found []byte) []byte {
	for _, t := range [][]byte{c.Token, c.Place.Token, found} {
		if len(t) > 0 {
			return t
		}
	}
	return []byte("open job " + c.Job)
}

// host makes rank 0's listeners and the coordinator.
func (g *Group) host(ctx context.Context, w *interfaceFilter) error {
	cfg := g.cfg
	var list []endpoint
	var err error
	if cfg.Place.Addr != "" {
		if list, err = endpoints(cfg.Place.Addr, cfg.Place.How); err != nil {
			return err
		}
	} else if cfg.Place.Publish == nil && cfg.World > 1 {
		return usage("nothing says where rank 0 is, and there is no way to publish it\nhint: set MASTER_ADDR and MASTER_PORT, or use a launcher that does")
	}
	h := homeOf(list, cfg.Nodes, isLocal)
	if h.note != "" {
		cfg.Warn(h.note)
	}
	listener, err := listenHome(ctx, h, cfg.Ports, cfg.grace)
	if err != nil {
		return err
	}
	var made []byte
	if cfg.Place.Publish != nil && !cfg.Place.Open {
		made = []byte(rand.Text() + rand.Text()) // what is published is text
	}
	token := cfg.secret(made)
	ip := h.bind // of data connections
	g.chosen = "where the other ranks reach rank 0"
	if !w.any() {
		n, err := w.choose(h.bind, nics())
		if err != nil {
			listener.Close()
			return err
		}
		ip, g.chosen = n.ip, fmt.Sprintf("%s, %s", n.name, w.how)
	}
	g.coordinator = newCoordinator(cfg, cfg.every(), listener, token)
	if err := g.listen(ctx, ip, token); err != nil {
		return err
	}
	ours, theirs := net.Pipe()
	zero := ip
	if !zero.IsValid() {
		zero = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	g.coordinator.attach(theirs, 0, zero)
	g.talk(ours, !ip.IsValid())
	if cfg.Place.Addr == "" && cfg.Place.Publish != nil {
		port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
		addr := published(port, cfg.Nodes, w, nics())
		if h.bind.IsValid() {
			addr = netip.AddrPortFrom(h.bind, port).String()
		}
		if err := cfg.Place.Publish(ctx, addr, token); err != nil {
			return fmt.Errorf("meet: rank 0: %w", err)
		}
	}
	return nil
}

// reachCoordinator connects to the coordinator, and makes this rank's listener.
func (g *Group) reachCoordinator(ctx context.Context, w *interfaceFilter) error {
	cfg := g.cfg
	c := &dialer{cfg: cfg, hello: g.hello(wire.Control, 0, 0)}
	conn, err := c.find(ctx)
	if err != nil {
		return err
	}
	route := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	err = keep(conn, deadAfter*cfg.every(), !route.IsLoopback())
	n := nic{ip: route}
	atZero := false
	switch {
	case err != nil:
	case !w.any():
		if n, err = w.choose(route, nics()); err == nil {
			g.chosen = fmt.Sprintf("%s, %s", n.name, w.how)
		}
	case route.IsLoopback() && cfg.Nodes != 1: // it is on rank 0's host, whose address the others know
		n.ip, atZero = netip.Addr{}, true
		g.chosen = "the address of rank 0, which is on the same host"
	default:
		g.chosen = fmt.Sprintf("%s, by the route to rank 0", nameOf(route, nics()))
	}
	if err == nil {
		err = g.listen(ctx, n.ip, c.token)
	}
	if err != nil {
		conn.Close()
		return err
	}
	g.talk(conn, atZero)
	return nil
}

// nameOf returns the name of the interface with an address.
func nameOf(ip netip.Addr, list []nic) string {
	for _, n := range list {
		if n.ip.WithZone("") == ip.WithZone("") {
			return n.name
		}
	}
	return "an unknown interface"
}

// hello is what this rank says first on a connection.
func (g *Group) hello(kind uint16, to int, stream uint32) wire.Hello {
	return wire.Hello{Kind: kind, To: uint32(to), World: uint32(g.cfg.World), Rank: uint32(g.cfg.Rank), Generation: uint32(g.cfg.Generation), Stream: stream,
		Job: wire.JobName(g.cfg.Job)}
}

// listen opens the listener for data connections.
func (g *Group) listen(ctx context.Context, ip netip.Addr, token []byte) error {
	l, err := listenFree(ctx, ip, g.cfg.Ports, g.cfg.LocalRank+1)
	if err != nil {
		return err
	}
	g.token = token
	g.data = newBacklog(g.cfg, l, token)
	return nil
}

// talk begins to use the control connection: this rank says who it is, and from now on that it lives.
func (g *Group) talk(conn net.Conn, atZero bool) {
	cfg := g.cfg
	addr := g.data.acceptor.listener.Addr().(*net.TCPAddr).AddrPort()
	j := wire.Join{Network: cfg.network, LocalWorld: cfg.LocalWorld, Nodes: cfg.Nodes, AtZero: atZero, Member: wire.Member{
		Rank: cfg.Rank, Node: cfg.Node, LocalRank: cfg.LocalRank, Host: cfg.Host, Machine: cfg.Machine,
		Addr: netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), PID: os.Getpid(), Version: cfg.Version, Device: cfg.Device}}
	g.control = newControlConn(conn)
	g.control.send(wire.KindJoin, j.Append(nil))
	g.wg.Go(g.read)
	g.wg.Go(g.pulse)
}

// await waits for the roster. The coordinator watches the deadline, and knows who is missing; a bit more is allowed for its word to come.
func (g *Group) await(ctx context.Context, begun time.Time) error {
	t := time.NewTimer(g.cfg.Timeouts.Start + g.cfg.Timeouts.Handshake)
	defer t.Stop()
	select {
	case <-g.ready:
		return nil
	case <-g.down:
		return g.Err()
	case <-ctx.Done():
		if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	case <-t.C:
	}
	return &LateError{"start", time.Since(begun), nil, g.waiting(), "look for the first error of those ranks"}
}
