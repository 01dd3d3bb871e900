// Package assemble turns a recipe into what it stands for: data sources, a model, an optimizer, a schedule, log files, and
// the train.Config that holds them all.
//
//	r, err := recipes.Load("resnet50")
//	cfg, err := assemble.Config(r, assemble.Rank{Identity: id, Comm: c})
//	cfg.Sinks, err = assemble.Sinks(r, id)
//	t, err := train.New(train.WithConfig(cfg))
//	res, err := t.Run(ctx)
//
// A recipe knows no package but its own keys; package train knows no recipe. This is the one place where they meet, so a
// new model family or data format is added here and in the schema.
package assemble
