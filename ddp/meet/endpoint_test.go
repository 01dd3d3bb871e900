package meet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

func TestEndpoints(t *testing.T) {
	for in, want := range map[string]string{
		"n1:29500":                         "[n1:29500]",
		"10.0.0.1:1, [fe80::1%eth0]:2,h:3": "[10.0.0.1:1 [fe80::1%eth0]:2 h:3]",
		"224.0.0.1:23456":                  "224.0.0.1 (x) is a multicast address, which cannot be connected to\nhint: give the address of rank 0",
		"[ff02::1]:1":                      "ff02::1 (x) is a multicast address",
		"0.0.0.0:29500":                    "0.0.0.0 (x) stands for any address",
		"n1":                               `"n1" (x) is not the address of rank 0`,
		"n1:0":                             `"n1:0" (x): "0" is not a port`,
		"n1:http":                          `"n1:http" (x): "http" is not a port`,
		":29500":                           `":29500" (x) is not the address`,
	} {
		list, err := endpoints(in, "x")
		got := fmt.Sprint(list)
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "meet: ")
			if launch.ExitCode(err) != launch.ExitUsage {
				t.Errorf("%s: exit code %d", in, launch.ExitCode(err))
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestHome(t *testing.T) {
	local := func(a netip.Addr) bool { return a.IsLoopback() || a.String() == "10.0.0.1" }
	for in, want := range map[string]string{
		"":                      "invalid IP:0", // published: all addresses
		"10.0.0.1:5":            "10.0.0.1:5",
		"127.0.0.1:5":           "127.0.0.1:5",
		"localhost:5":           "127.0.0.1:5",
		"n1:5":                  "invalid IP:5", // the own name often stands for 127.0.1.1
		"10.0.0.9:5":            "invalid IP:5 note",
		"10.0.0.1:5,10.0.0.2:5": "invalid IP:5",
	} {
		var list []endpoint
		if in != "" {
			list, _ = endpoints(in, "")
		}
		h := homeOf(list, 2, local)
		got := fmt.Sprintf("%v:%d", h.bind, h.port)
		if h.note != "" {
			got += " note"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if h := homeOf(nil, 1, local); !h.bind.IsLoopback() {
		t.Errorf("one node, published: %v", h.bind)
	}
	if !isLocal(netip.MustParseAddr("127.0.0.1")) || isLocal(netip.MustParseAddr("192.0.2.77")) {
		t.Error("isLocal")
	}
}

func TestWishes(t *testing.T) {
	list := []nic{{"lo", netip.MustParseAddr("127.0.0.1")}, {"eth0", netip.MustParseAddr("10.0.0.2")}, {"eth0", netip.MustParseAddr("fe80::2%eth0")},
		{"eth1", netip.MustParseAddr("192.168.1.2")}, {"docker0", netip.MustParseAddr("172.17.0.1")}, {"eth10", netip.MustParseAddr("fd00::2")}}
	for _, c := range []struct{ setting, env, route, want string }{
		{"", "", "10.0.0.2", "10.0.0.2"},
		{"eth1", "", "10.0.0.2", "192.168.1.2"},
		{"eth0", "", "fd00::9", "fe80::2%eth0"},
		{"eth0", "", "192.168.1.2", "10.0.0.2"},
		{"eth9,eth1", "", "10.0.0.2", "192.168.1.2"},
		{"192.168.0.0/16", "", "10.0.0.2", "192.168.1.2"},
		{"fd00::/8", "", "10.0.0.2", "fd00::2"},
		{"lo", "", "10.0.0.2", "127.0.0.1"},
		{"eth", "", "10.0.0.2", "no interface of host"}, // our own setting has whole names
		{"10.0.0/8", "", "10.0.0.2", "is not a network"},
		{"", "NCCL_SOCKET_IFNAME=eth1", "10.0.0.2", "192.168.1.2"},
		{"", "NCCL_SOCKET_IFNAME==eth10", "10.0.0.2", "fd00::2"},
		{"", "HCCL_SOCKET_IFNAME=^eth,lo", "10.0.0.2", "172.17.0.1"},
		{"", "HCCL_SOCKET_IFNAME=^docker", "10.0.0.2", "10.0.0.2"},
		{"", "GLOO_SOCKET_IFNAME=eth", "10.0.0.2", "GLOO_SOCKET_IFNAME=eth: no interface of host"},
		{"eth0", "GLOO_SOCKET_IFNAME=eth1", "192.168.1.2", "10.0.0.2"},
	} {
		w, err := wishOf(c.setting, launch.LookupIn([]string{c.env}))
		var n nic
		if err == nil {
			n, err = w.choose(netip.MustParseAddr(c.route), list)
		}
		got := n.ip.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q %s from %s: %s, want %s", c.setting, c.env, c.route, got, c.want)
		}
	}
	if got := published(5, 2, &interfaceFilter{not: []string{"docker0"}}, list); got != "10.0.0.2:5,192.168.1.2:5,[fd00::2]:5" {
		t.Error(got)
	}
	if got := published(5, 1, &interfaceFilter{}, list); got != "127.0.0.1:5" {
		t.Error(got)
	}
	if len(nics()) == 0 {
		t.Error("this host has no interface")
	}
}

// Every cause of a failed connection has its own words.
func TestUnreachable(t *testing.T) {
	op := func(no syscall.Errno) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", no)} }
	seen := map[string]error{}
	for _, err := range []error{op(syscall.ECONNREFUSED), op(syscall.EHOSTUNREACH), op(syscall.ENETUNREACH), op(syscall.EPERM), op(syscall.ETIMEDOUT),
		op(syscall.ECONNRESET), op(syscall.EMFILE), &net.DNSError{Name: "n1", IsNotFound: true}, &net.DNSError{Name: "n1", Err: "server misbehaving"}} {
		why, hint := unreachable(err)
		if why == "" || hint == "" || seen[why] != nil {
			t.Errorf("%v: %q, %q (the same as %v)", err, why, hint, seen[why])
		}
		seen[why] = err
	}
	if why, _ := unreachable(context.DeadlineExceeded); why != "no answer" {
		t.Error(why)
	}
	if why := ended(op(syscall.ETIMEDOUT), 4e9, true); !strings.Contains(why, "no answer from its host for 4s") {
		t.Error(why)
	}
	for far, want := range map[bool]string{true: "a firewall or a NAT device", false: "its process ended"} {
		if why := ended(&net.OpError{Err: syscall.ECONNRESET}, 4e9, far); !strings.Contains(why, want) {
			t.Errorf("a connection was reset, to another host: %v: %s", far, why)
		}
	}
	if why := ended(errors.New("x"), 4e9, true); why != "its control connection broke: x" {
		t.Error(why)
	}
}

func TestListenFree(t *testing.T) {
	ip := netip.MustParseAddr("127.0.0.1")
	a, err := listenFree(t.Context(), ip, [2]int{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	port := a.Addr().(*net.TCPAddr).Port
	_, err = listenFree(t.Context(), ip, [2]int{port, port}, 3)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no port from %d to %d of 127.0.0.1 is free", port, port)) {
		t.Error(err)
	}
	if _, err := listenFree(t.Context(), ip, [2]int{9, 8}, 0); launch.ExitCode(err) != launch.ExitUsage {
		t.Error(err)
	}
}
