package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// Meeting says what is wanted of the address of rank 0.
type Meeting struct {
	Addr      string // the user's choice (--master_addr) or that of a rank table; "": find one
	Port      int    // 0: a free one
	Interface string // names, addresses or networks, separated by commas; "": any
}

// Master finds an address of the first node that all other nodes can connect to, and a free port there. All nodes try all candidates, so the answer does not
// depend on what a name means on which host.
func Master(ctx context.Context, nodes []Node, m Meeting) (addr string, port int, err error) {
	if m.Addr != "" && m.Port != 0 {
		return m.Addr, m.Port, nil // as given: a service or a translated address may stand for rank 0
	}
	first := nodes[0]
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	f, err := first.Ask(ctx, Question{What: askFacts})
	if err != nil {
		return "", 0, err
	}
	ans, err := first.Ask(ctx, Question{What: askListen, Port: m.Port})
	if err != nil {
		return "", 0, fmt.Errorf("%w\nhint: another process has port %d on that host; choose one with --master_port, or leave it out", err, m.Port)
	}
	defer func() { _, _ = first.Ask(context.WithoutCancel(ctx), Question{What: askClose}) }()
	if m.Addr != "" {
		return m.Addr, ans.Port, nil
	}
	all, err := candidates(ctx, first.Name(), f.Facts, m.Interface)
	if err != nil {
		return "", 0, err
	}
	if len(all) == 0 {
		return "", 0, launch.WithCode(launch.ExitUnavailable, fmt.Errorf(
			"remote: host %s has no address but loopback\nhint: other hosts cannot connect to it; is its network up?", first.Name()))
	}
	addr, err = reached(ctx, nodes, all, ans.Port)
	return addr, ans.Port, err
}

// reached returns the first candidate that all nodes but the first can connect to.
func reached(ctx context.Context, nodes []Node, all []string, port int) (string, error) {
	addrs := make([]string, len(all))
	for i, c := range all {
		addrs[i] = net.JoinHostPort(c, strconv.Itoa(port))
	}
	said := make([]Answer, len(nodes))
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i := 1; i < len(nodes); i++ {
		wg.Go(func() {
			said[i], errs[i] = nodes[i].Ask(ctx, Question{What: askReach, Addrs: addrs})
			if errs[i] == nil && len(said[i].Reach) != len(addrs) {
				errs[i] = fmt.Errorf("%w: %d answers to %d addresses", errFrame, len(said[i].Reach), len(addrs))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	for c := range addrs {
		ok := true
		for i := 1; i < len(nodes); i++ {
			ok = ok && said[i].Reach[c] == ""
		}
		if ok {
			return all[c], nil
		}
	}
	var why []string
	for i := 1; i < len(nodes); i++ {
		for c := range addrs {
			if r := said[i].Reach[c]; r != "" {
				why = append(why, fmt.Sprintf("  %s cannot reach %s (%s): %s", nodes[i].Name(), nodes[0].Name(), addrs[c], r))
			}
		}
	}
	return "", launch.WithCode(launch.ExitUnavailable, fmt.Errorf("remote: no address of host %s can be reached from all hosts:\n%s\n"+
		"hint: choose the network with --interface; a firewall must let the hosts connect to each other (see docs/cluster.md)",
		nodes[0].Name(), strings.Join(why, "\n")))
}

// candidates lists addresses of the first host, the likeliest first.
func candidates(ctx context.Context, name string, f *Facts, iface string) (out []string, err error) {
	if f == nil {
		return nil, fmt.Errorf("%w: no facts", errFrame)
	}
	add := func(s string) {
		if a, err := netip.ParseAddr(s); err == nil && !a.IsLoopback() && !a.IsUnspecified() && !a.IsMulticast() && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if iface != "" {
		for _, a := range f.Addresses {
			if on(a, iface) {
				add(addrOf(a))
			}
		}
		if len(out) == 0 {
			return nil, launch.WithCode(launch.ExitUsage, fmt.Errorf("remote: host %s has no interface %s\nhint: it has %s", name, iface, listed(f.Addresses)))
		}
		return out, nil
	}
	add(name)
	rctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	if ips, err := net.DefaultResolver.LookupHost(rctx, name); err == nil {
		for _, ip := range ips {
			if slices.ContainsFunc(f.Addresses, func(a Address) bool { return addrOf(a) == ip }) { // else an alias of something in front of the host
				add(ip)
			}
		}
	}
	add(f.Server)
	for _, v6 := range []bool{false, true} {
		for _, a := range f.Addresses {
			if strings.Contains(a.Prefix, ":") == v6 && !bridge(a.Interface) {
				add(addrOf(a))
			}
		}
	}
	return out, nil
}

// bridge reports whether an interface connects containers or virtual machines of one host: every host has the same address there, so that one would reach
// itself.
func bridge(name string) bool {
	for _, p := range []string{"docker", "virbr", "lxcbr", "cni", "podman"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// on reports whether an address belongs to one of the named interfaces, addresses or networks.
func on(a Address, list string) bool {
	for want := range strings.SplitSeq(list, ",") {
		want = strings.TrimSpace(want)
		if want == a.Interface || want == addrOf(a) {
			return true
		}
		if n, err := netip.ParsePrefix(want); err == nil {
			if ip, err := netip.ParseAddr(addrOf(a)); err == nil && n.Contains(ip) {
				return true
			}
		}
	}
	return false
}

// addrOf is the address without the length of the prefix.
func addrOf(a Address) string {
	ip, _, _ := strings.Cut(a.Prefix, "/")
	return ip
}

func listed(all []Address) string {
	var out []string
	for _, a := range all {
		out = append(out, a.Interface+" "+a.Prefix)
	}
	if out == nil {
		return "none but loopback"
	}
	return strings.Join(out, ", ")
}
