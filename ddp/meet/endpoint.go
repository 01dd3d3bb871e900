package meet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// endpoint is one address at which rank 0 may be.
type endpoint struct {
	host string
	port uint16
}

func (e endpoint) String() string { return net.JoinHostPort(e.host, strconv.Itoa(int(e.port))) }

// endpoints parses Place.Addr, and refuses addresses that nobody can connect to.
func endpoints(addr, how string) (list []endpoint, err error) {
	if how != "" {
		how = " (" + how + ")"
	}
	for _, one := range strings.Split(addr, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(one))
		if err != nil || host == "" {
			return nil, usage("%q%s is not the address of rank 0\nhint: give HOST:PORT, with an IPv6 address in brackets", one, how)
		}
		p, err := strconv.ParseUint(port, 10, 16)
		if err != nil || p == 0 {
			return nil, usage("%q%s: %q is not a port\nhint: give a number from 1 to 65535", one, how, port)
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			switch {
			case ip.IsMulticast():
				return nil, usage("%s%s is a multicast address, which cannot be connected to\nhint: give the address of rank 0", host, how)
			case ip.IsUnspecified():
				return nil, usage("%s%s stands for any address, and cannot be connected to\nhint: give the address of rank 0", host, how)
			}
		}
		list = append(list, endpoint{host, uint16(p)})
	}
	return list, nil
}

// resolve returns the addresses of an endpoint.
func (e endpoint) resolve(ctx context.Context) (list []netip.AddrPort, err error) {
	if ip, err := netip.ParseAddr(e.host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), e.port)}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", e.host)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		list = append(list, netip.AddrPortFrom(ip.Unmap(), e.port))
	}
	return list, nil
}

// home is where rank 0 listens for the others.
type home struct {
	bind netip.Addr // invalid: all addresses of the host
	port uint16     // 0: any
	note string     // something that the user should know
}

// homeOf decides where rank 0 listens. It listens on one address only if it was given as such, or if the job has one node; the own host name often resolves to
// a loopback address, which would keep the other hosts out.
func homeOf(list []endpoint, nodes int, local func(netip.Addr) bool) (h home) {
	if len(list) == 0 {
		if nodes == 1 {
			h.bind = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		return h
	}
	h.port = list[0].port
	ip, err := netip.ParseAddr(list[0].host)
	switch {
	case len(list) > 1:
	case err == nil && local(ip):
		h.bind = ip
	case err == nil:
		h.note = fmt.Sprintf("%v is not an address of this host (%s); rank 0 listens on all its addresses", ip, hostname())
	case list[0].host == "localhost":
		h.bind = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return h
}

// isLocal reports whether an address is one of this host.
func isLocal(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if have, ok := netip.AddrFromSlice(n.IP); ok && have.Unmap() == ip.Unmap().WithZone("") {
				return true
			}
		}
	}
	return false
}
