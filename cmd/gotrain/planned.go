package main

import (
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
}

// summarise plans a run; blind does not open the data. The caller calls done when it no longer needs the program.
func summarise(r *recipes.Recipe, blind bool) (*planned, func(), error) {
	ranks := r.Train.Ranks
	id := launch.Identity{World: ranks, LocalWorld: ranks, Nodes: 1}
	place, err := launch.Place(id, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	cfg, assumed, err := assemble.Plan(r, assemble.Rank{Identity: id, Placement: place}, blind)
	if err != nil {
		return nil, nil, err
	}
	t, err := train.New(train.WithConfig(cfg))
	if err != nil {
		return nil, nil, err
	}
	s, err := t.Summarise(ranks)
	if err != nil {
		t.Close()
		return nil, nil, err
	}
	if assumed != nil && !assumed.Epoch {
		s.StepsPerPass = 0
	}
	return &planned{s, assumed}, func() { t.Close() }, nil
}
