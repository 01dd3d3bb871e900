package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// dial connects to addr, and leads the handshake.
func dial(ctx context.Context, addr netip.AddrPort, h wire.Hello, token []byte, handshake time.Duration) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: attempt}
	raw, err := d.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	conn := raw.(*net.TCPConn)
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) // ends the handshake
	err = authenticate(conn, h, token, handshake)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// dialer connects a rank to the coordinator.
type dialer struct {
	cfg   *Config
	hello wire.Hello
	token []byte

	unsigned time.Time // since when unsigned refusals come
	told     time.Time // last sentence to the user
	begun    time.Time
}

// failure is why an attempt at one address failed.
type failure struct {
	at  string // "n1:29500 (10.0.0.1)"
	err error
}

// find connects to the coordinator. It tries until ctx ends, except where trying again has no use.
func (d *dialer) find(ctx context.Context) (*net.TCPConn, error) {
	d.begun = time.Now()
	d.told = d.begun
	var b backoff
	met := false
	text, hint := "rank 0 has not published its address ("+d.cfg.Place.How+")", "look at the first error of rank 0"
	for {
		list, err := d.where(ctx) // what is published may be left over from an earlier run
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			return nil, &LateError{"start", time.Since(d.begun), []int{0}, text, hint}
		}
		if err != nil {
			return nil, err
		}
		conn, failures := d.round(ctx, list)
		if conn != nil {
			return conn, nil
		}
		now := time.Now()
		for _, m := range failures {
			if err := d.final(m, now); err != nil {
				return nil, err
			}
		}
		if until, ok := ctx.Deadline(); !met || !ok || time.Until(until) > cutShort { // an attempt that the deadline ended explains less
			text, hint = d.sentence(failures)
			met = true
		}
		if now.Sub(d.told) >= d.cfg.tell {
			d.told = now
			d.cfg.Waiting(withHint(text, hint))
		}
		if !b.wait(ctx) {
			if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
				return nil, err
			}
			return nil, &LateError{"start", time.Since(d.begun), []int{0}, text, hint}
		}
	}
}

// where returns the addresses of rank 0, and takes the token that was published beside them.
func (d *dialer) where(ctx context.Context) ([]endpoint, error) {
	p := &d.cfg.Place
	if p.Addr == "" && p.Lookup == nil {
		return nil, usage("nothing says where rank 0 is\nhint: set MASTER_ADDR and MASTER_PORT, or use a launcher that does")
	}
	addr, token := p.Addr, []byte(nil)
	if addr == "" {
		var err error
		if addr, token, err = p.Lookup(ctx); err != nil {
			return nil, fmt.Errorf("meet: rank %d: %w", d.cfg.Rank, err)
		}
	}
	d.token = d.cfg.secret(token)
	return endpoints(addr, p.How)
}

// round tries all addresses at a time. The first connection that is accepted wins.
func (d *dialer) round(ctx context.Context, list []endpoint) (conn *net.TCPConn, failures []failure) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	fail := func(at string, err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, failure{at, err})
	}
	for _, e := range list {
		wg.Go(func() {
			addrs, err := e.resolve(ctx)
			if err != nil {
				fail(e.String(), err)
			}
			var each sync.WaitGroup
			for _, a := range addrs {
				each.Go(func() {
					got, err := dial(ctx, a, d.hello, d.token, d.cfg.Timeouts.Handshake)
					if err != nil {
						fail(named(e, a), err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if conn != nil {
						got.Close()
						return
					}
					conn = got
					cancel()
				})
			}
			each.Wait()
		})
	}
	wg.Wait()
	return conn, failures
}

// named writes an endpoint with the address that its name stands for.
func named(e endpoint, a netip.AddrPort) string {
	if ip, err := netip.ParseAddr(e.host); err == nil && ip.Unmap() == a.Addr() {
		return a.String()
	}
	return fmt.Sprintf("%v (%v)", e, a.Addr())
}

// final returns an error if a failed attempt leaves no hope.
func (d *dialer) final(m failure, now time.Time) error {
	var r *refusal
	foreign := errors.Is(m.err, errForeign)
	if errors.As(m.err, &r) {
		switch {
		case r.verdict == wire.NewGeneration:
			return nil // the old one is about to end
		case r.signed:
			return &RefusedError{r.reason, d.advice(r.verdict)}
		case r.verdict == wire.WrongToken && d.cfg.Place.Lookup == nil:
			// A job of the same name that waits for its ranks: no earlier one, which would be about to end. A published token may be of an earlier run that
			// left it behind, and is looked up again.
			return &RefusedError{fmt.Sprintf("%s refuses: %s", m.at, r.reason), d.advice(r.verdict)}
		}
	} else if !foreign {
		return d.loopback(m, now)
	}
	if d.unsigned.IsZero() {
		d.unsigned = now
	}
	if now.Sub(d.unsigned) < d.cfg.grace {
		return nil
	}
	if foreign {
		return &RefusedError{fmt.Sprintf("%s: %v", m.at, m.err), d.advice(wire.WrongToken)}
	}
	return &RefusedError{fmt.Sprintf("%s refuses: %s", m.at, r.reason), d.advice(r.verdict)}
}

// loopback gives up on an address that stands for this host itself, while rank 0 is on another.
func (d *dialer) loopback(m failure, now time.Time) error {
	if d.cfg.Node <= 0 || now.Sub(d.begun) < d.cfg.tell || !lasting(m.err) || !strings.Contains(m.at, "127.") && !strings.Contains(m.at, "::1") {
		return nil
	}
	return &RefusedError{fmt.Sprintf("rank %d on node %d: %s is a loopback address, which other hosts cannot reach, and nothing listens there on this host",
		d.cfg.Rank, d.cfg.Node, m.at), "give an address of rank 0 that the other hosts can reach"}
}

func (d *dialer) advice(v wire.Verdict) string {
	switch v {
	case wire.WrongVersion:
		return "use the same binary on all hosts"
	case wire.WrongJob:
		return "another job uses this port: choose another one (MASTER_PORT), or give all ranks the same GOTRAIN_JOB_ID"
	case wire.WrongToken, wire.EarlierToken:
		return "give all ranks of the job the same GOTRAIN_JOB_TOKEN, and each job its own port"
	case wire.WrongWorld, wire.WrongRank:
		return "start all ranks with the same WORLD_SIZE, each with its own RANK"
	case wire.OldGeneration:
		return "this process is left over from before the restart: end it"
	}
	return ""
}

// sentence says what this rank waits for.
func (d *dialer) sentence(failures []failure) (text, hint string) {
	var words []string
	for _, m := range failures {
		why, h := unreachable(m.err)
		words = append(words, m.at+": "+why)
		if hint == "" {
			hint = h
		}
	}
	how := ""
	if d.cfg.Place.How != "" {
		how = " (" + d.cfg.Place.How + ")"
	}
	return fmt.Sprintf("rank %d on host %s cannot reach rank 0%s: %s", d.cfg.Rank, d.cfg.Host, how, strings.Join(words, "; ")), hint
}
