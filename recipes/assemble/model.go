package assemble

import (
	"fmt"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
)

// families are the networks by the name that recipes use; each has a file of its own.
var families = map[string]func(r *recipes.Recipe, src data.Source) (train.Model, error){
	"resnet": resnetModel,
	"llama":  llamaModel,
}

// Model is the network of the recipe with its loss and metrics. src are the training samples: a model may take its last dimension from them.
func Model(r *recipes.Recipe, src data.Source) (train.Model, error) {
	family := families[r.Model.Name]
	if family == nil {
		return nil, fmt.Errorf("recipes: model.name = %q is not implemented", r.Model.Name)
	}
	return family(r, src)
}
