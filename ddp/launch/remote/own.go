package remote

import (
	"context"
	"net"
	"os"
	"strings"
	"time"
)

// Own reports whether a name in a list of hosts means this machine: its host name, localhost, or a name or address of one of its interfaces. resolve says
// whether names are looked up, which has no use where a command other than ssh gives them a meaning.
func Own(ctx context.Context, name string, resolve bool) bool {
	self, _ := os.Hostname()
	short, _, _ := strings.Cut(self, ".")
	switch strings.ToLower(name) {
	case "localhost", "localhost.localdomain", strings.ToLower(self), strings.ToLower(short):
		return true
	}
	own := map[string]bool{}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			own[n.IP.String()] = true
		}
	}
	mine := func(ip net.IP) bool { return ip != nil && (ip.IsLoopback() || own[ip.String()]) }
	if ip := net.ParseIP(name); ip != nil || !resolve {
		return mine(ip)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", name)
	if err != nil || len(ips) == 0 {
		return false // ssh may know it from its configuration
	}
	for _, ip := range ips {
		if !mine(ip) {
			return false
		}
	}
	return true
}
