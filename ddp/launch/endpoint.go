package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Endpoint reads the address of rank 0 as people write it: "n1", "n1:29500", "192.168.1.10:29500", "[fe80::1]:29500", "fe80::1", each also behind "tcp://",
// as in PyTorch's init_method. The port is 0 if there is none. A multicast address, which PyTorch's documentation once had in an example, is refused,
// because nobody can connect to one.
func Endpoint(s string) (host string, port int, err error) {
	host = strings.TrimSpace(s)
	if scheme, rest, ok := strings.Cut(host, "://"); ok {
		if scheme != "tcp" {
			return "", 0, fmt.Errorf("%q does not begin with tcp://\nhint: write HOST:PORT", s)
		}
		host = strings.TrimSuffix(rest, "/")
	}
	text, given := "", false
	switch {
	case strings.HasPrefix(host, "["):
		end := strings.IndexByte(host, ']')
		if end < 0 {
			return "", 0, fmt.Errorf("%q has no ] after [\nhint: write [ADDRESS]:PORT", s)
		}
		if rest := host[end+1:]; rest != "" {
			if text, given = strings.CutPrefix(rest, ":"); !given {
				return "", 0, fmt.Errorf("%q has more than a port after ]\nhint: write [ADDRESS]:PORT", s)
			}
		}
		host = host[1:end]
	case strings.Count(host, ":") == 1:
		host, text, given = strings.Cut(host, ":")
	}
	if given {
		if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
			return "", 0, fmt.Errorf("%q is not a port\nhint: use a number from 1 to 65535", text)
		}
	}
	return host, port, checkHost(host)
}

// checkHost refuses what cannot be the host of rank 0.
func checkHost(host string) error {
	if host == "" {
		return errors.New("the host is missing\nhint: give the address of rank 0")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.IsMulticast() {
			return fmt.Errorf("%s is a multicast address, to which nobody can connect\nhint: give the address of rank 0", host)
		}
		return nil
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("/:@[]", r) }) {
		return fmt.Errorf("%q is not a host\nhint: give the name or the address of rank 0", host)
	}
	return nil
}
