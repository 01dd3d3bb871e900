package meet

import (
	"fmt"
	"net/netip"
	"strings"
)

// Member is one rank of a job.
type Member struct {
	Rank      int
	Node      int            // index of its node, in the order of their first ranks
	LocalRank int            // index among the ranks of its node
	Host      string         // for messages
	Machine   string         // equal for ranks that can share memory; see Machine
	Addr      netip.AddrPort // of its listener for data connections, as this rank reaches it
	PID       int
	Version   string // of the binary
	Device    string // the device it owns; "" if the device can be shared
}

// Roster lists the ranks of a job. All ranks hold the same one, but for addresses: those of rank 0's host are as this rank reaches it.
type Roster struct {
	Job        string
	Generation int      // how often the job was restarted
	Nonce      string   // tells this meeting from all others, also from those of other jobs with the same name
	Members    []Member // by rank
}

// Nodes returns the number of nodes.
func (r *Roster) Nodes() int {
	n := 0
	for _, m := range r.Members {
		n = max(n, m.Node+1)
	}
	return n
}

// OnNode returns the ranks of a node, in order.
func (r *Roster) OnNode(node int) (ranks []int) {
	for _, m := range r.Members {
		if m.Node == node {
			ranks = append(ranks, m.Rank)
		}
	}
	return ranks
}

// NodeOf returns the node of every rank.
func (r *Roster) NodeOf() []int {
	list := make([]int, len(r.Members))
	for i, m := range r.Members {
		list[i] = m.Node
	}
	return list
}

// Rail returns the ranks with an equal local rank, one of each node that has so many, in the order of nodes.
func (r *Roster) Rail(local int) (ranks []int) {
	for n := range r.Nodes() {
		for _, m := range r.Members {
			if m.Node == n && m.LocalRank == local {
				ranks = append(ranks, m.Rank)
			}
		}
	}
	return ranks
}

// Name returns a rank with its host, for messages: "rank 3 (n2)".
func (r *Roster) Name(rank int) string {
	if rank < 0 || rank >= len(r.Members) || r.Members[rank].Host == "" {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d (%s)", rank, r.Members[rank].Host)
}

// Names returns ranks by host, for messages: "ranks 0, 2 of host n1 and ranks 4–7 of host n2".
func (r *Roster) Names(ranks []int) string {
	return byHost(ranks, func(rank int) string {
		if rank < 0 || rank >= len(r.Members) || r.Members[rank].Host == "" {
			return ""
		}
		return "host " + r.Members[rank].Host
	})
}

// byHost groups ranks by their place, in the order of first appearance.
func byHost(ranks []int, place func(rank int) string) string {
	var places []string
	of := map[string][]int{}
	for _, r := range ranks {
		p := place(r)
		if of[p] == nil {
			places = append(places, p)
		}
		of[p] = append(of[p], r)
	}
	var words []string
	for _, p := range places {
		w := Ranks(of[p])
		if p != "" {
			w += " of " + p
		}
		words = append(words, w)
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// Ranks writes a list of ranks in increasing order for messages: "rank 3", "ranks 4–7", "ranks 0, 2, 4–7".
func Ranks(ranks []int) string {
	var words []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			words = append(words, fmt.Sprint(ranks[i]))
		case 1:
			words = append(words, fmt.Sprint(ranks[i]), fmt.Sprint(ranks[j]))
		default:
			words = append(words, fmt.Sprintf("%d–%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	if len(ranks) == 1 {
		return "rank " + words[0]
	}
	return "ranks " + strings.Join(words, ", ")
}
