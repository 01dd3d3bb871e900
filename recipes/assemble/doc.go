// Package assemble builds what a recipe describes: data sources, a model, an optimizer, a schedule, log files, and
// the train.Config that combines them.
//
//	r, err := recipes.Load("resnet50")
//	cfg, err := assemble.Config(r, assemble.Rank{Identity: id, Comm: c})
//	cfg.Sinks, err = assemble.Sinks(r, id)
//	t, err := train.New(train.WithConfig(cfg))
//	res, err := t.Run(ctx)
//
// Package recipes knows only its keys, and package train knows nothing about recipes. This package connects them, so a
// new data format is added here and in the schema, a new model family in package graph/models.
package assemble
