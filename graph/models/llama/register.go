package llama

import "github.com/gotrain/gotrain/graph/models"

func init() {
	models.Register("llama", models.Family{Instead: "a Llama generates text: use gotrain generate, or package train/generate", Recipe: recipe()})
}
