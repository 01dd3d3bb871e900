package assemble

import (
	"encoding/json"
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
)

// Classes returns the number of classes of the model: the recipe's, or else that of the data.
func Classes(r *recipes.Recipe, src data.Source) (int, error) {
	has := len(src.Classes())
	switch n := r.Model.Classes; {
	case has == 1 && n <= 1, n == 1:
		return 0, fmt.Errorf("recipes: %s has only one class, so there is nothing to learn\nhint: %s", src.Name(), oneClassHint(src))
	case n == 0 && has == 0:
		return 0, fmt.Errorf("recipes: model.classes is not set, and %s does not give its number of classes\nhint: set model.classes", src.Name())
	case n == 0:
		return has, nil
	case n < has:
		return 0, fmt.Errorf("recipes: model.classes = %d, but %s has %d classes\nhint: remove model.classes", n, src.Name(), has)
	default:
		return n, nil
	}
}

func oneClassHint(src data.Source) string {
	if names := src.Classes(); len(names) == 1 {
		return fmt.Sprintf(
			"the only class folder is %q; check whether data.root is one level too high or too low. If more classes will follow, set model.classes",
			names[0],
		)
	}
	return "set model.classes to at least 2"
}

// classifier is the row of a family whose networks classify pictures, as package graph/models opens them.
func classifier(config func(r *recipes.Recipe, classes int) (json.RawMessage, error)) family {
	return family{config: config, model: classifierModel, synthetic: noise, sample: classifierSample, planned: classifierPlanned}
}

// classifierModel is the network with its loss, top1, and top5 if there are more than five classes.
func classifierModel(r *recipes.Recipe, src data.Source) (train.Model, error) {
	classes, err := Classes(r, src)
	if err != nil {
		return nil, err
	}
	f, err := familyOf(r)
	if err != nil {
		return nil, err
	}
	raw, err := f.config(r, classes)
	if err != nil {
		return nil, err
	}
	net, err := models.Open(r.Model.Name, raw)
	if err != nil {
		return nil, err
	}
	weights, err := classWeights(r, src, classes)
	if err != nil {
		return nil, err
	}
	m := r.Model
	return func(b *graph.Builder, in train.Inputs) train.Outputs {
		logits := net(b, in)
		loss, count, weight := classLoss(b, &m, weights, logits, in)
		out := train.Outputs{Loss: loss, Count: count, Weight: weight, Logits: logits, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
		if classes > 5 {
			out.Metrics["top5"] = b.TopK(logits, in["label"], 5)
		}
		return out
	}, nil
}

// noise makes pictures of noise.
func noise(r *recipes.Recipe, n int) (data.Source, error) {
	d := &r.Data
	return data.NewSynthetic(r.Run.Seed, n, r.Model.Classes, d.Channels, d.ImageSize, d.ImageSize)
}

func classifierSample(r *recipes.Recipe, src data.Source) (string, error) {
	n, err := Classes(r, src)
	return "of " + amount.Count(n) + " classes", err
}

func classifierPlanned(r *recipes.Recipe) (taken, lacks []string) {
	if n := r.Model.Classes; n > 0 {
		taken = append(taken, "model.classes = "+amount.Count(n))
	} else {
		lacks = append(lacks, "the number of classes (--classes N, or model.classes in the recipe)")
	}
	if n := r.Data.ImageSize; n > 0 {
		taken = append(taken, fmt.Sprintf("data.image_size = %d", n))
	} else {
		lacks = append(lacks, "the size of the pictures (--set data.image_size=N)")
	}
	return taken, lacks
}
