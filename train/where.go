package train

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/meet"
)

// where lists the hosts with their ranks and addresses: "n1 (10.0.0.1): ranks 0, 1; n2 (10.0.0.2): ranks 2, 3".
func (h *hosts) where() string {
	var list []string
	for n := range h.roster.Nodes() {
		list = append(list, h.host(n))
	}
	return strings.Join(list, "; ")
}

// host names a host with its address and ranks.
func (h *hosts) host(node int) string {
	ranks := h.roster.OnNode(node)
	first := h.roster.Members[ranks[0]]
	return fmt.Sprintf("%s (%v): %s", first.Host, first.Addr.Addr(), meet.Ranks(ranks))
}

// hostRows is the number of hosts that the start lists one by one.
const hostRows = 16

// say prints once where the ranks are, how they met, and how they are connected and why.
func (h *hosts) say() {
	if h.id.Rank != 0 {
		return
	}
	n := h.roster.Nodes()
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s on %d %s, which met through %s", h.id.World, plural(h.id.World, "rank"), n, plural(n, "host"), h.place.How)
	for node := range min(n, hostRows) {
		b.WriteString("\n  " + h.host(node))
	}
	if n > hostRows {
		fmt.Fprintf(&b, "\n  and %d more", n-hostRows)
	}
	fmt.Fprintf(&b, "\n  rank 0 receives data at %s", h.group.Address())
	if s := h.topology(); s != "" {
		b.WriteString("\n  " + s)
	}
	slog.Info(b.String())
}

// topology says how large sums travel: "topology auto: exchange below 256 KiB, mesh from there (2 ranks, 9.4 Gbit/s, 25µs)".
func (h *hosts) topology() string {
	t, err := link.ParseTopology(or(h.links.Topology, "auto"))
	if err != nil {
		return "" // open has refused it
	}
	n := h.roster.Nodes()
	most, even := 0, true
	for node := range n {
		ranks := len(h.roster.OnNode(node))
		even = even && (node == 0 || ranks == most)
		most = max(most, ranks)
	}
	says := ""
	switch {
	case h.links.Transport == "tcp" || most == 1:
		says = h.link.Says(t, h.id.World)
	case even:
		says = link.Cluster{Ranks: h.id.World, Hosts: n, Link: h.link, Topology: t}.Says() + "; sums host by host"
	default:
		says = fmt.Sprintf("ranks reduce in shared memory, and the first rank of each host exchanges for its host, since hosts have different numbers of "+
			"ranks; between %d hosts %s; sums host by host", n, h.link.Says(t, n))
	}
	return fmt.Sprintf("topology %v: %s", t, says)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// network is the job for predictions: every rank a host of its own where TCP joins them all, else the ranks of each host; no hosts if their numbers differ.
func (h *hosts) network() link.Cluster {
	n, world := h.roster.Nodes(), h.id.World
	c := link.Cluster{Ranks: world, Hosts: n, Link: h.link}
	c.Topology, _ = link.ParseTopology(or(h.links.Topology, "auto")) // open has refused what is no topology
	if h.links.Transport == "tcp" {
		c.Hosts = world
		return c
	}
	for node := range n {
		if len(h.roster.OnNode(node))*n != world {
			c.Hosts = 0
		}
	}
	return c
}
