package meet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// said makes ranks of "machine node localrank localworld" each.
func said(t *testing.T, lines ...string) (list []wire.Join) {
	for r, l := range lines {
		j := wire.Join{Network: "net"}
		j.Rank, j.Version, j.Addr = r, "v1", netip.MustParseAddrPort(fmt.Sprint("10.0.0.", r+1, ":7"))
		if _, err := fmt.Sscan(l, &j.Machine, &j.Node, &j.LocalRank, &j.LocalWorld); err != nil {
			t.Fatal(err)
		}
		j.Host = "host-" + j.Machine
		list = append(list, j)
	}
	return list
}

func TestArrange(t *testing.T) {
	for name, c := range map[string]struct {
		ranks []string
		want  string // node.local of each rank, or words of the problem
	}{
		"nothing known":               {[]string{"a -1 -1 -1", "a -1 -1 -1", "b -1 -1 -1"}, "0.0 0.1 1.0"},
		"two hosts, as announced":     {[]string{"a 0 0 2", "a 0 1 2", "b 1 0 2", "b 1 1 2"}, "0.0 0.1 1.0 1.1"},
		"round robin":                 {[]string{"a 0 0 2", "b 1 0 2", "a 0 1 2", "b 1 1 2"}, "0.0 1.0 0.1 1.1"},
		"unequal hosts":               {[]string{"a 0 0 1", "b 1 0 3", "b 1 1 3", "b 1 2 3"}, "0.0 1.0 1.1 1.2"},
		"a launcher splits a machine": {[]string{"a 0 0 1", "a 1 0 1"}, "0.0 1.0"},
		"containers of one host":      {[]string{"a 0 0 2", "b 0 1 2"}, "0.0 1.0"},
		"nodes in another order":      {[]string{"a 5 0 1", "b 2 0 1"}, "0.0 1.0"},
		"too few came":                {[]string{"a 0 0 2", "b 1 0 2"}, "rank 0 is one of 2 ranks of host host-a according to its launcher, but 1 came from there"},
		"too many came":               {[]string{"a -1 0 1", "a -1 1 1"}, "rank 0 is one of 1 ranks of host host-a according to its launcher, but 2 came"},
		"the same local rank":         {[]string{"a 0 0 2", "a 0 0 2"}, "ranks 0 and 1 on host host-a are both local rank 0"},
	} {
		members, problem, hint := arrange(said(t, c.ranks...))
		var got []string
		for _, m := range members {
			got = append(got, fmt.Sprintf("%d.%d", m.Node, m.LocalRank))
		}
		if s := strings.Join(got, " ") + problem; !strings.HasPrefix(s, c.want) || (problem == "") != (hint == "") {
			t.Errorf("%s: %s\nwant %s (hint %q)", name, s, c.want, hint)
		}
	}
}

func TestConflicts(t *testing.T) {
	for want, edit := range map[string]func(j []wire.Join){
		"": func(j []wire.Join) { j[0].Device, j[1].Device, j[2].Device = "npu:0", "npu:1", "npu:0" },
		"rank 2 on host host-b runs gotrain v2, rank 0 on host host-a runs gotrain v1":          func(j []wire.Join) { j[2].Version = "v2" },
		"ranks 0 and 1 on host host-a both use device npu:3":                                    func(j []wire.Join) { j[0].Device, j[1].Device = "npu:3", "npu:3" },
		"rank 2 on host host-b listens on the loopback address 127.0.1.1, which rank 0 on":      func(j []wire.Join) { j[2].Network, j[2].Addr = "other", netip.MustParseAddrPort("127.0.1.1:7") },
		"rank 0 on host host-a listens on the loopback address ::1, which rank 2 on host":       func(j []wire.Join) { j[2].Network, j[0].Addr = "other", netip.MustParseAddrPort("[::1]:7") },
		"rank 2 on host host-b reached rank 0 on host host-a by a loopback address, as through": func(j []wire.Join) { j[2].Network, j[2].AtZero = "other", true },
	} {
		list := said(t, "a 0 0 2", "a 0 1 2", "b 1 0 1")
		edit(list)
		if _, problem, _ := arrange(list); !strings.HasPrefix(problem, want) || want == "" && problem != "" {
			t.Errorf("%q, want %q", problem, want)
		}
	}
	list := said(t, "a 0 0 1", "b 1 0 1") // several fake machines in one network may use loopback
	list[1].Addr = netip.MustParseAddrPort("127.0.0.1:7")
	if _, problem, _ := arrange(list); problem != "" {
		t.Error(problem)
	}
}

func TestSeenFrom(t *testing.T) {
	list := said(t, "a 0 0 2", "a 0 1 2", "b 1 0 1")
	list[0].AtZero, list[1].AtZero = true, true
	members, _, _ := arrange(list)
	got := seenFrom(netip.MustParseAddr("192.168.0.1"), list, members)
	if s := fmt.Sprint(got[0].Addr, got[1].Addr, got[2].Addr, members[0].Addr); s != "192.168.0.1:7 192.168.0.1:7 10.0.0.3:7 10.0.0.1:7" {
		t.Error(s)
	}
}

func TestNames(t *testing.T) {
	r := &Roster{Members: []Member{{Rank: 0, Host: "n1"}, {Rank: 1, Host: "n1"}, {Rank: 2, Host: "n2"}, {Rank: 3, Host: "n2"}, {Rank: 4, Host: "n2"}}}
	for want, got := range map[string]string{
		"ranks 0, 1 of host n1 and ranks 2–4 of host n2": r.Names([]int{0, 1, 2, 3, 4}),
		"rank 3 of host n2": r.Names([]int{3}),
		"rank 9":            r.Names([]int{9}),
		"rank 3 (n2)":       r.Name(3),
		"rank 7":            r.Name(7),
		"ranks 1, 2, 5–7":   Ranks([]int{1, 2, 5, 6, 7}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
