package resnet

import (
	"encoding/json"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models"
)

func init() {
	models.Register("resnet", models.Family{Open: open, Recognise: Recognise, Recipe: &models.Recipe{
		Reads: models.Images, BatchNorm: true,
		// Its keys have always been in [model].
		Keys: []string{"model.depth", "model.width", "model.classes", "model.small_stem", "model.version", "model.zero_init_residual", "model.drop_path",
			"model.norm_eps", "model.norm_momentum", "model.label_smoothing"},
	}})
}

// open makes the network of a Config in JSON. It reads the field "image".
func open(raw json.RawMessage) (models.Network, error) {
	cfg, err := models.Config[Config](raw)
	if err == nil {
		_, err = cfg.check()
	}
	if err != nil {
		return nil, err
	}
	return func(b *graph.Builder, in map[string]*graph.Node) *graph.Node {
		x, ok := in["image"]
		if !ok {
			b.Failf("a ResNet reads the field %q, which the samples lack", "image")
			return nil
		}
		return Build(b, x, cfg)
	}, nil
}
