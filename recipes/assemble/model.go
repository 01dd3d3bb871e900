package assemble

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
)

// family is what this package knows of one kind of network; what a recipe has to know of it is in the table of package recipes.
type family struct {
	// model is the network with its loss and metrics. src are the training samples: a model may take its last dimension from them.
	model func(r *recipes.Recipe, src data.Source) (train.Model, error)
	// configure adds to a configuration what only this family has; nil: nothing.
	configure func(r *recipes.Recipe, c *train.Config) error
	// synthetic are n samples that mean nothing.
	synthetic func(r *recipes.Recipe, n int) (data.Source, error)
	// sample says what a sample is, for a person: "of 10 classes".
	sample func(r *recipes.Recipe, src data.Source) (string, error)
	// planned prepares a recipe for a plan without data: it says what is taken from the recipe instead, or what the recipe lacks.
	planned func(r *recipes.Recipe) (taken, lacks []string)
	// llama is the configuration of a family that is a Llama, which other programs read; nil for others.
	llama func(r *recipes.Recipe, tokens text.Info) (llama.Config, error)
}

// families are the networks by the name that recipes use; each has a file of its own.
var families = map[string]family{
	"resnet": {model: resnetModel, synthetic: resnetSamples, sample: resnetSample, planned: resnetPlanned},
	"llama":  {model: llamaModel, configure: llamaFiles, synthetic: syntheticTokens, sample: llamaSample, planned: llamaPlanned, llama: llamaConfig},
}

// familyOf is the row of a recipe's network.
func familyOf(r *recipes.Recipe) (family, error) {
	f, ok := families[r.Model.Name]
	if !ok {
		return f, fmt.Errorf("recipes: model.name = %q is not implemented", r.Model.Name)
	}
	return f, nil
}

// Model is the network of the recipe with its loss and metrics. src are the training samples: a model may take its last dimension from them.
func Model(r *recipes.Recipe, src data.Source) (train.Model, error) {
	f, err := familyOf(r)
	if err != nil {
		return nil, err
	}
	return f.model(r, src)
}

// Sample says in words what a sample of the recipe is, such as "of 10 classes".
func Sample(r *recipes.Recipe, src data.Source) (string, error) {
	f, err := familyOf(r)
	if err != nil {
		return "", err
	}
	return f.sample(r, src)
}
