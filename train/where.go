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
		ranks := h.roster.OnNode(n)
		first := h.roster.Members[ranks[0]]
		list = append(list, fmt.Sprintf("%s (%v): %s", first.Host, first.Addr.Addr(), meet.Ranks(ranks)))
	}
	return strings.Join(list, "; ")
}

// say prints once where the ranks are, how they are connected and why.
func (h *hosts) say() {
	if h.id.Rank != 0 {
		return
	}
	n := h.roster.Nodes()
	slog.Info(fmt.Sprintf("%d ranks on %d hosts: %s", h.id.World, n, h.where()), "met by", h.place.How, "rank 0 takes data at", h.group.Address())
	t, err := link.ParseTopology(or(h.links.Topology, "auto"))
	if err != nil {
		return // open has refused it
	}
	most, even := 0, true
	for node := range n {
		ranks := len(h.roster.OnNode(node))
		even = even && (node == 0 || ranks == most)
		most = max(most, ranks)
	}
	switch {
	case h.links.Transport == "tcp" || most == 1:
		slog.Info("between ranks: "+h.link.Says(t, h.id.World), "topology", t)
	case even:
		slog.Info(link.Cluster{Ranks: h.id.World, Hosts: n, Link: h.link, Topology: t}.Says(), "topology", t, "sums", "host by host")
	default:
		slog.Info(fmt.Sprintf("ranks reduce in shared memory, and the first rank of each of %d hosts exchanges for its host, since hosts have different "+
			"numbers of ranks; between them: %s", n, h.link.Says(t, n)), "topology", t, "sums", "host by host")
	}
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
