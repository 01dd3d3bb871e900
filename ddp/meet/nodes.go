package meet

import (
	"fmt"
	"net/netip"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// arrange checks what the ranks said of themselves, and gives them nodes and local ranks: ranks of one node have the same machine and the same node number of
// the launcher, so a launcher can split a machine, but cannot join two. A problem keeps the job from starting.
func arrange(joins []wire.Join) (members []wire.Member, problem, hint string) {
	if problem, hint = conflicts(joins); problem != "" {
		return nil, problem, hint
	}
	type place struct {
		said    int
		machine string
	}
	nodes := map[place]int{}
	var size []int
	members = make([]wire.Member, len(joins))
	for r, j := range joins {
		p := place{j.Node, j.Machine}
		n, ok := nodes[p]
		if !ok {
			n = len(size)
			nodes[p], size = n, append(size, 0)
		}
		members[r] = j.Member
		members[r].Node, members[r].LocalRank = n, size[n]
		size[n]++
	}
	machines := map[int]map[string]bool{} // of a node of the launcher
	for _, j := range joins {
		if machines[j.Node] == nil {
			machines[j.Node] = map[string]bool{}
		}
		machines[j.Node][j.Machine] = true
	}
	for r, j := range joins { // where a launcher's node is several containers, its count is of all of them
		if n := size[members[r].Node]; j.LocalWorld > 0 && j.LocalWorld != n && (j.Node < 0 || len(machines[j.Node]) == 1) {
			return nil, fmt.Sprintf("rank %d is one of %d ranks of host %s according to its launcher, but %d came from there", r, j.LocalWorld, j.Host, n),
				"start the same number of ranks as LOCAL_WORLD_SIZE (or --nproc_per_node) says; ranks that share a machine need the same node rank"
		}
	}
	return members, "", ""
}

// conflicts finds two ranks that cannot be in one job.
func conflicts(joins []wire.Join) (problem, hint string) {
	type local struct {
		node    int
		machine string
		rank    int
	}
	type device struct{ machine, name string }
	locals, devices := map[local]int{}, map[device]int{}
	for r := range joins {
		j, zero := &joins[r], &joins[0]
		if j.Version != zero.Version {
			return fmt.Sprintf("rank %d on host %s runs gotrain %s, rank 0 on host %s runs gotrain %s", r, j.Host, j.Version, zero.Host, zero.Version),
				"use the same binary on all hosts"
		}
		if j.LocalRank >= 0 {
			at := local{j.Node, j.Machine, j.LocalRank}
			if other, twice := locals[at]; twice {
				return fmt.Sprintf("ranks %d and %d on host %s are both local rank %d", other, r, j.Host, j.LocalRank),
					"if they belong to different nodes, give them different node ranks; if not, each needs its own LOCAL_RANK"
			}
			locals[at] = r
		}
		if j.Device != "" {
			at := device{j.Machine, j.Device}
			if other, twice := devices[at]; twice {
				return fmt.Sprintf("ranks %d and %d on host %s both use device %s", other, r, j.Host, j.Device), "start one rank for each device"
			}
			devices[at] = r
		}
	}
	return unreachables(joins)
}

// unreachables finds a loopback address that another host would have to reach.
func unreachables(joins []wire.Join) (problem, hint string) {
	hint = "give an address of rank 0 that the other hosts can reach, or choose a network with interface = \"NAME\"; " +
		"in /etc/hosts, the own name often stands for 127.0.1.1"
	for r := range joins {
		j := &joins[r]
		if j.AtZero && j.Network != joins[0].Network {
			return fmt.Sprintf("rank %d on host %s reached rank 0 on host %s by a loopback address, as through a tunnel; data connections cannot go that way",
				r, j.Host, joins[0].Host), hint
		}
		if j.AtZero || !j.Addr.Addr().IsLoopback() {
			continue
		}
		for o := range joins {
			if joins[o].Network != j.Network {
				return fmt.Sprintf("rank %d on host %s listens on the loopback address %v, which rank %d on host %s cannot reach",
					r, j.Host, j.Addr.Addr(), o, joins[o].Host), hint
			}
		}
	}
	return "", ""
}

// seenFrom fills the addresses of ranks that listen where rank 0 does: zero is rank 0's address in the view of the rank that gets the roster.
func seenFrom(zero netip.Addr, joins []wire.Join, members []wire.Member) []wire.Member {
	own := make([]wire.Member, len(members))
	copy(own, members)
	for r := range own {
		if joins[r].AtZero {
			own[r].Addr = netip.AddrPortFrom(zero, joins[r].Addr.Port())
		}
	}
	return own
}
