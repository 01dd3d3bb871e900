package meet

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
)

// nic is an address of this host with the name of its interface.
type nic struct {
	name string
	ip   netip.Addr
}

// nics lists the addresses of interfaces that are up.
func nics() (list []nic) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			ip, ok := netip.AddrFromSlice(n.IP)
			if !ok {
				continue
			}
			if ip = ip.Unmap(); ip.IsLinkLocalUnicast() && ip.Is6() {
				ip = ip.WithZone(i.Name)
			}
			list = append(list, nic{i.Name, ip})
		}
	}
	return list
}

// interfaceFilter is which interfaces may carry data connections.
type interfaceFilter struct {
	how   string // where it comes from, for messages
	nets  []netip.Prefix
	names []string // interfaces that may be used; none: all
	not   []string // interfaces that must not be used
	whole bool     // names are whole names; otherwise beginnings, as NCCL has them
}

// interfaceVars are the variables that name interfaces for collectives, in order of precedence.
var interfaceVars = []string{"HCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}

// wishOf reads a setting: a list of names or networks. Variables of NCCL and HCCL have beginnings of names; "=" before them means whole names, "^" that these
// are excluded.
func wishOf(setting string, lookup launch.Lookup) (w interfaceFilter, err error) {
	w.how, w.whole = "interface = "+setting, true
	if setting == "" {
		for _, name := range interfaceVars {
			if v, ok := lookup(name); ok && v != "" {
				setting, w.how, w.whole = v, name+"="+v, name == "GLOO_SOCKET_IFNAME"
				break
			}
		}
	}
	if setting == "" {
		return interfaceFilter{whole: true}, nil
	}
	exclude := false
	if rest, ok := strings.CutPrefix(setting, "^"); ok {
		setting, exclude = rest, true
	}
	if rest, ok := strings.CutPrefix(setting, "="); ok {
		setting, w.whole = rest, true
	}
	for _, s := range strings.Split(setting, ",") {
		s = strings.TrimSpace(s)
		if p, err := netip.ParsePrefix(s); err == nil && !exclude {
			w.nets = append(w.nets, p.Masked())
		} else if strings.Contains(s, "/") {
			return w, usage("%s: %q is not a network\nhint: write 10.0.0.0/8, or the name of an interface", w.how, s)
		} else if exclude {
			w.not = append(w.not, s)
		} else if s != "" {
			w.names = append(w.names, s)
		}
	}
	return w, nil
}

// any reports that nothing was asked for.
func (w *interfaceFilter) any() bool { return len(w.nets)+len(w.names)+len(w.not) == 0 }

func (w *interfaceFilter) named(n nic, list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		return n.name == s || !w.whole && strings.HasPrefix(n.name, s)
	})
}

func (w *interfaceFilter) allows(n nic) bool {
	if w.named(n, w.not) {
		return false
	}
	if len(w.names)+len(w.nets) == 0 {
		return true
	}
	return w.named(n, w.names) || slices.ContainsFunc(w.nets, func(p netip.Prefix) bool { return p.Contains(n.ip.WithZone("")) })
}

// choose returns the address for data connections: route is the address by which this host reached rank 0, which is kept if it is allowed. Otherwise it is
// the best address of an allowed interface: of route's family, not link-local.
func (w *interfaceFilter) choose(route netip.Addr, list []nic) (nic, error) {
	route = route.Unmap()
	best, rank := nic{}, -1
	for _, n := range list {
		if !w.allows(n) {
			continue
		}
		score := 0
		switch {
		case n.ip.WithZone("") == route.WithZone("") && route.IsValid():
			score = 8
		case n.ip.IsLoopback() && len(w.names)+len(w.nets) == 0:
			continue // "any but docker" does not ask for loopback
		default:
			if n.ip.Is4() == route.Is4() {
				score += 4
			}
			if !n.ip.IsLinkLocalUnicast() {
				score += 2
			}
			if !n.ip.IsLoopback() {
				score++
			}
		}
		if score > rank {
			best, rank = n, score
		}
	}
	if rank < 0 {
		return nic{}, usage("%s: no interface of host %s that is up matches\nhint: it has %s", w.how, hostname(), described(list))
	}
	return best, nil
}

// described lists interfaces for a message.
func described(list []nic) string {
	var words []string
	for _, n := range list {
		words = append(words, fmt.Sprintf("%s (%v)", n.name, n.ip))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// published returns the addresses under which rank 0 publishes a port: the one towards the default route first, at most four.
func published(port uint16, nodes int, w *interfaceFilter, list []nic) string {
	first := outward()
	var ips []netip.Addr
	for _, n := range list {
		if !w.allows(n) || n.ip.IsLoopback() || n.ip.IsLinkLocalUnicast() {
			continue
		}
		if n.ip == first {
			ips = append([]netip.Addr{n.ip}, ips...)
		} else {
			ips = append(ips, n.ip)
		}
	}
	if nodes == 1 || len(ips) == 0 {
		ips = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	var words []string
	for _, ip := range ips[:min(4, len(ips))] {
		words = append(words, netip.AddrPortFrom(ip, port).String())
	}
	return strings.Join(words, ",")
}

// outward returns the own address on the way to the world. No packet is sent: connecting a UDP socket only looks up the route.
func outward() netip.Addr {
	c, err := net.Dial("udp", "192.0.2.1:9")
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}
