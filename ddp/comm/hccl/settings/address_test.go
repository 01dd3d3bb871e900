package settings

import (
	"net/netip"
	"slices"
	"testing"
)

// Hosts tell HCCL the addresses by which the ranks met, and may have different ones.
func TestAddress(t *testing.T) {
	for _, c := range []struct {
		addr string
		env  map[string]string
		want []Var
	}{
		{addr: "", want: nil},
		{addr: "10.0.0.2", want: []Var{{"HCCL_IF_IP", "10.0.0.2"}}},
		{addr: "::ffff:10.0.0.2", want: []Var{{"HCCL_IF_IP", "10.0.0.2"}}},
		{addr: "fe80::1%eth0", want: []Var{{"HCCL_IF_IP", "fe80::1"}, {"HCCL_SOCKET_FAMILY", "AF_INET6"}}},
		{addr: "fd00::1", env: map[string]string{"HCCL_SOCKET_FAMILY": "AF_INET6"}, want: []Var{{"HCCL_IF_IP", "fd00::1"}}},
		{addr: "10.0.0.2", env: map[string]string{"HCCL_IF_IP": "10.1.0.2"}},
		{addr: "10.0.0.2", env: map[string]string{"HCCL_SOCKET_IFNAME": "eth1"}},
	} {
		in := Input{Env: c.env, Ranks: 4}
		if c.addr != "" {
			in.Address = netip.MustParseAddr(c.addr)
		}
		s, err := Read(in)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(slices.Clone(s.Setenv), func(v Var) bool { return v.Name != "HCCL_IF_IP" && v.Name != "HCCL_SOCKET_FAMILY" })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s with %v: %v, want %v", c.addr, c.env, got, c.want)
		}
		for _, l := range s.Lines {
			if l.Own != (l.What == "HCCL_IF_IP" || l.What == "HCCL_SOCKET_IFNAME") {
				t.Errorf("%s: of this host: %v", l.What, l.Own)
			}
		}
	}
}
