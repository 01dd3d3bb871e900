package resnet

import "github.com/gotrain/gotrain/graph/models"

func init() {
	models.Register("resnet", models.Family{Open: models.OfImages("a ResNet", Config.check, Build), Recognise: Recognise, Recipe: &models.Recipe{
		Reads: models.Images, BatchNorm: true,
		// Its keys have always been in [model].
		Keys: []string{"model.depth", "model.width", "model.classes", "model.small_stem", "model.version", "model.zero_init_residual", "model.drop_path",
			"model.norm_eps", "model.norm_momentum", "model.label_smoothing"},
	}})
}
