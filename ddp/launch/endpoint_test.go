package launch

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"n1": "n1 0", "n1:29500": "n1 29500", "192.168.1.10:29500": "192.168.1.10 29500", "tcp://192.168.1.10:29500": "192.168.1.10 29500",
		"[fe80::1]:1": "fe80::1 1", "[fe80::1]": "fe80::1 0", "fe80::1%eth0": "fe80::1%eth0 0", "tcp://[::1]:65535/": "::1 65535", " n1 ": "n1 0",
		"worker-0.job.ns.svc": "worker-0.job.ns.svc 0",
	} {
		host, port, err := Endpoint(in)
		if got := fmt.Sprint(host, " ", port); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"tcp://224.0.0.1:23456": "give the address of rank 0", "[ff02::1]:5": "multicast", "": "missing", ":29500": "missing", "n1:0": "not a port",
		"n1:x": "not a port", "n1:70000": "not a port", "http://n1:80": "tcp://", "[::1": "no ]", "[::1]x": "after ]", "a b": "not a host",
		"n1,n2": "", "user@n1": "not a host",
	} {
		if host, port, err := Endpoint(in); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q %d, error %v, want one with %q", in, host, port, err, want)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"tcp://[::1]:1/", "n1:29500", "fe80::1", "224.0.0.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, port, err := Endpoint(s)
		if err != nil {
			return
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsMulticast() || port < 0 || port > 65535 {
			t.Fatalf("%q became %q, %d", s, host, port)
		}
		if h, p, err := Endpoint(net.JoinHostPort(host, "1")); err != nil || h != host || p != 1 {
			t.Fatalf("%q became %q, which becomes %q, %d, %v", s, host, h, p, err)
		}
	})
}
