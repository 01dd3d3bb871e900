package nodes

import (
	"errors"
	"fmt"
)

// places says where the ranks of a job are.
type places struct {
	rank   int
	nodeOf []int   // by rank
	local  []int   // by rank: index among the ranks of its node
	ranks  [][]int // by node
	most   int     // ranks of the largest node
	equal  bool    // all nodes have as many ranks: every rank is on a rail
}

// newPlaces checks a map of nodes: nodes are numbered from 0, and each has a rank.
func newPlaces(rank int, nodeOf []int) (*places, error) {
	if rank < 0 || rank >= len(nodeOf) {
		return nil, fmt.Errorf("rank %d in a job of %d", rank, len(nodeOf))
	}
	p := &places{rank: rank, nodeOf: nodeOf, local: make([]int, len(nodeOf)), equal: true}
	n := 0
	for _, node := range nodeOf {
		n = max(n, node+1)
	}
	if n > len(nodeOf) {
		return nil, fmt.Errorf("node %d in a job of %d ranks", n-1, len(nodeOf))
	}
	p.ranks = make([][]int, n)
	for r, node := range nodeOf {
		if node < 0 {
			return nil, fmt.Errorf("rank %d is on node %d", r, node)
		}
		p.local[r] = len(p.ranks[node])
		p.ranks[node] = append(p.ranks[node], r)
	}
	for node, ranks := range p.ranks {
		if len(ranks) == 0 {
			return nil, fmt.Errorf("node %d has no rank", node)
		}
		p.most = max(p.most, len(ranks))
		p.equal = p.equal && len(ranks) == len(p.ranks[0])
	}
	return p, nil
}

// size is the number of ranks.
func (p *places) size() int { return len(p.nodeOf) }

// nodes is the number of nodes.
func (p *places) nodes() int { return len(p.ranks) }

// node is that of this rank.
func (p *places) node() int { return p.nodeOf[p.rank] }

// mine are the ranks of this node.
func (p *places) mine() []int { return p.ranks[p.node()] }

// me is this rank's local rank.
func (p *places) me() int { return p.local[p.rank] }

// onRail reports whether this rank is in an outer group.
func (p *places) onRail() bool { return p.nodes() > 1 && (p.equal || p.me() == 0) }

// Rail returns the ranks of the outer group of a rank, in its order, or nil if the rank needs none: because all ranks are on one node, or because nodes
// have different numbers of ranks and this one is not the first of its node.
func Rail(rank int, nodeOf []int) ([]int, error) {
	p, err := newPlaces(rank, nodeOf)
	if err != nil || !p.onRail() {
		return nil, err
	}
	rail := make([]int, p.nodes())
	for n, ranks := range p.ranks {
		rail[n] = ranks[p.me()]
	}
	return rail, nil
}

// fits checks that the groups are those of the map.
func (p *places) fits(cfg *Config) error {
	switch {
	case cfg.Inner == nil || cfg.Control == nil:
		return errors.New("an inner group and a control are needed")
	case cfg.Inner.Size() != len(p.mine()) || cfg.Inner.Rank() != p.me():
		return fmt.Errorf("the inner group has this rank as %d of %d, its node as %d of %d", cfg.Inner.Rank(), cfg.Inner.Size(), p.me(), len(p.mine()))
	case p.onRail() != (cfg.Outer != nil):
		return fmt.Errorf("an outer group: %v, wanted: %v", cfg.Outer != nil, p.onRail())
	case cfg.Outer != nil && (cfg.Outer.Size() != p.nodes() || cfg.Outer.Rank() != p.node()):
		return fmt.Errorf("the outer group has this rank as %d of %d, the job is on %d nodes and this is node %d",
			cfg.Outer.Rank(), cfg.Outer.Size(), p.nodes(), p.node())
	case cfg.Flat != nil && (cfg.Flat.Size() != p.size() || cfg.Flat.Rank() != p.rank):
		return fmt.Errorf("the group for messages has this rank as %d of %d", cfg.Flat.Rank(), cfg.Flat.Size())
	}
	return nil
}
