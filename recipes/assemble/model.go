package assemble

import (
	"encoding/json"
	"fmt"

	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
)

// family is what this package knows about one kind of network; what a recipe needs to know comes from package graph/models.
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

// families are the networks by model.name that need more than their section says; each has its own file. All others classify pictures, and their section
// gives the configuration.
func families() map[string]family {
	return map[string]family{
		"resnet": classifier(resnetConfig), // its keys are in [model]
		"llama":  {model: llamaModel, configure: llamaFiles, synthetic: syntheticTokens, sample: llamaSample, planned: llamaPlanned, llama: llamaConfig},
	}
}

// familyOf returns the row of a recipe's network.
func familyOf(r *recipes.Recipe) (family, error) {
	name := r.Model.Name
	if f, ok := families()[name]; ok {
		return f, nil
	}
	f, _ := models.Find(name)
	if f.Open == nil || f.Recipe == nil || f.Recipe.Section == nil || f.Recipe.Section.Config == nil || f.Recipe.Reads != models.Images {
		return family{}, fmt.Errorf("recipes: model.name = %q is not implemented", name)
	}
	return classifier(func(r *recipes.Recipe, classes int) (json.RawMessage, error) {
		return f.Recipe.Section.Config(r.Section(), r, classes)
	}), nil
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
