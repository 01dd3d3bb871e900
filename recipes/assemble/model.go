package assemble

import (
	"encoding/json"
	"fmt"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
)

// family is what this package knows about one kind of network; what a recipe needs to know is in the table of package recipes.
type family struct {
	// model builds the network with its loss and metrics. src holds the training samples: a model may take its output size from them.
	model func(r *recipes.Recipe, src data.Source) (train.Model, error)
	// config is the configuration of the network for a number of classes, as package graph/models opens it; nil: checkpoints keep only the family's name.
	config func(r *recipes.Recipe, classes int) (json.RawMessage, error)
	// configure adds what only this family needs to a configuration; nil: nothing.
	configure func(r *recipes.Recipe, c *train.Config) error
	// synthetic makes n random samples.
	synthetic func(r *recipes.Recipe, n int) (data.Source, error)
	// sample describes a sample to the user: "of 10 classes".
	sample func(r *recipes.Recipe, src data.Source) (string, error)
	// planned prepares a recipe for a plan without data: it returns what is taken from the recipe instead, and what the recipe lacks.
	planned func(r *recipes.Recipe) (taken, lacks []string)
	// llama returns the configuration of a Llama, for use by other programs; nil for other families.
	llama func(r *recipes.Recipe, tokens text.Info) (llama.Config, error)
}

// families are the networks by model.name; each has its own file.
var families = map[string]family{
	"resnet": {model: resnetModel, config: resnetConfig, synthetic: resnetSamples, sample: resnetSample, planned: resnetPlanned},
	"llama":  {model: llamaModel, configure: llamaFiles, synthetic: syntheticTokens, sample: llamaSample, planned: llamaPlanned, llama: llamaConfig},
}

// familyOf returns the row of a recipe's network.
func familyOf(r *recipes.Recipe) (family, error) {
	f, ok := families[r.Model.Name]
	if !ok {
		return f, fmt.Errorf("recipes: model.name = %q is not implemented", r.Model.Name)
	}
	return f, nil
}

// Model returns the network of the recipe with its loss and metrics. src holds the training samples: a model may take its output size from them.
func Model(r *recipes.Recipe, src data.Source) (train.Model, error) {
	f, err := familyOf(r)
	if err != nil {
		return nil, err
	}
	return f.model(r, src)
}

// Sample describes a sample of the recipe in words, such as "of 10 classes".
func Sample(r *recipes.Recipe, src data.Source) (string, error) {
	f, err := familyOf(r)
	if err != nil {
		return "", err
	}
	return f.sample(r, src)
}
