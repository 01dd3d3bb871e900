package main

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
)

// findData checks that the data set exists, without opening it.
func findData(r *recipes.Recipe) error {
	if r.Data.Kind == "synthetic" {
		return nil
	}
	_, err := data.Locate(r.Data.Root, r.Dir())
	return launch.WithCode(launch.ExitNoInput, err)
}

// describeData opens the data sets and describes in one line what a run would do with them. With files it also loads every sample once.
func describeData(ctx context.Context, r *recipes.Recipe, files bool) (string, error) {
	ranks := r.Train.Ranks
	if err := assemble.FindWeights(r); err != nil {
		return "", err
	}
	cfg, err := assemble.Config(ctx, r, assemble.Rank{Identity: launch.Identity{World: ranks, LocalWorld: ranks}})
	if err != nil {
		return "", err
	}
	if _, err := train.New(train.WithConfig(cfg)); err != nil {
		return "", launch.WithCode(launch.ExitRecipe, err)
	}
	what, err := assemble.Sample(r, cfg.Data)
	if err != nil {
		return "", launch.WithCode(launch.ExitRecipe, err)
	}
	if files {
		if err := checkFiles(ctx, cfg.Seed, cfg.Data, cfg.Eval); err != nil {
			return "", err
		}
	}
	held := ""
	if cfg.Eval != nil {
		held = fmt.Sprintf(" and %s held-out", amount.Count(cfg.Eval.Len()))
	}
	return fmt.Sprintf("%s training%s samples %s, global batch %s on %d ranks",
		amount.Count(cfg.Data.Len()), held, what, amount.Count(r.GlobalBatch(ranks)), ranks), nil
}
