package main

import (
	"context"
	"os"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
)

// planned is a plan with the assumptions behind it.
type planned struct {
	*train.Summary
	Assumed *assemble.Assumed `json:"assumed,omitempty"` // nil: the data were opened
	Network *train.Prediction `json:"network,omitempty"` // nil: not asked for
}

// summarise plans a run on a network; blind does not open the data. The caller calls done when it no longer needs the program.
func summarise(ctx context.Context, r *recipes.Recipe, blind bool, on *networkFlags) (*planned, func(), error) {
	ranks := r.Train.Ranks
	net, err := on.network(r)
	if err != nil {
		return nil, nil, err
	}
	hosts := net.Cluster.Hosts
	id := launch.Identity{World: ranks, LocalWorld: ranks / hosts, Nodes: hosts}
	place, err := launch.Place(id, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	cfg, assumed, err := assemble.Plan(ctx, r, assemble.Rank{Identity: id, Placement: place}, blind)
	if err != nil {
		return nil, nil, err
	}
	t, err := train.New(train.WithConfig(cfg))
	if err != nil {
		return nil, nil, err
	}
	s, err := t.SummariseOn(ctx, ranks, hosts)
	p := &planned{Summary: s, Assumed: assumed}
	if err == nil && on.given() {
		p.Network, err = t.Predict(s, net)
	}
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	if assumed != nil && !assumed.Epoch {
		s.StepsPerPass = 0
	}
	return p, func() { t.Close() }, nil
}
