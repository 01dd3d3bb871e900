package vit

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/models"
)

func init() {
	models.Register("vit", models.Family{Open: models.OfImages("a ViT", Config.check, Build), Recognise: Recognise, Adapt: Adapt, Recipe: &models.Recipe{
		Reads: models.Images, Layers: true, Keys: []string{"model.classes", "model.label_smoothing", "model.drop_path"}, Section: models.Keys[Keys]{
			Doc:   `The network when model.name = "vit" (arXiv 2010.11929): a named size, or explicit dimensions, which override it.`,
			Check: (*Keys).check, Config: (*Keys).config,
		}.Section(),
	}})
}

// Keys are the keys of the section [vit] of a recipe, with the tags that recipes.Recipe describes.
type Keys struct {
	Size       string  `toml:"size" default:"" oneof:"|deit-ti|deit-s|deit-b|vit-ti|vit-s|vit-b|vit-l" doc:"A published size; deit and vit of one size are the same network. Empty: set dim, depth and heads."`
	Patch      int     `toml:"patch_size" default:"16" unit:"pixels" min:"1" max:"256" doc:"Width and height of a patch; data.image_size is a multiple of it."`
	Dim        int     `toml:"dim" default:"0" min:"0" max:"65536" doc:"Width of a token; 0: that of the size."`
	Depth      int     `toml:"depth" default:"0" min:"0" max:"1024" doc:"Number of blocks; 0: that of the size."`
	Heads      int     `toml:"heads" default:"0" min:"0" max:"1024" doc:"Heads of attention, which divide dim; 0: those of the size."`
	MLPRatio   float64 `toml:"mlp_ratio" default:"4" over:"0" max:"64" doc:"Width of the feed-forward layers, as a multiple of dim."`
	QKVBias    bool    `toml:"qkv_bias" default:"true" doc:"Whether queries, keys and values have a bias."`
	ClassToken bool    `toml:"class_token" default:"true" doc:"Whether there is a class token in front of the patches. Without it, set pool to mean."`
	Pool       string  `toml:"pool" default:"token" oneof:"token|mean" doc:"What is classified. token: the class token. mean: the mean of the patches, with a norm of its own (timm's global_pool = avg)."`
	NormEps    float64 `toml:"norm_eps" default:"1e-6" over:"0" max:"1" doc:"Added to the variance in layer norms."`
	Dropout    float64 `toml:"dropout" default:"0" min:"0" max:"0.9" doc:"Probability of dropout after the positions and after each linear layer of a block but qkv."`
	InitStd    float64 `toml:"init_std" default:"0.02" over:"0" max:"1" doc:"Standard deviation of the normal distribution that initialises positions and the weights of linear layers."`
}

// check reports faults across several keys.
func (k *Keys) check(of models.Values) (out []models.Problem) {
	bad := func(key, hint, format string, a ...any) {
		out = append(out, models.Problem{Key: key, Msg: fmt.Sprintf(format, a...), Hint: hint})
	}
	c := k.sized()
	for _, d := range []struct {
		key string
		v   int
	}{{"vit.dim", c.Dim}, {"vit.depth", c.Depth}, {"vit.heads", c.Heads}} {
		if d.v == 0 {
			bad(d.key, `set it, or a size such as vit.size = "deit-s"`, "is required when vit.size is empty")
		}
	}
	if c.Heads > 0 && c.Dim%c.Heads != 0 {
		bad("vit.heads", "", "must divide vit.dim = %d, got %d", c.Dim, c.Heads)
	}
	if !k.ClassToken && k.Pool == "token" {
		bad("vit.pool", `pool = "mean" classifies the mean of the patches`, `must not be "token" without vit.class_token`)
	}
	if n, _ := of.Value("data.image_size").(int); n%max(k.Patch, 1) != 0 {
		bad("vit.patch_size", "", "must divide data.image_size = %d, got %d", n, k.Patch)
	}
	return out
}

// sized is the size with what overrides it.
func (k *Keys) sized() Config {
	c := Sized(k.Size)
	for _, o := range []struct {
		at *int
		v  int
	}{{&c.Dim, k.Dim}, {&c.Depth, k.Depth}, {&c.Heads, k.Heads}} {
		if o.v > 0 {
			*o.at = o.v
		}
	}
	return c
}

// config is the configuration, as checkpoints keep it.
func (k *Keys) config(of models.Values, classes int) (any, error) {
	c := k.sized()
	c.Patch, c.MLP, c.Classes, c.NoQKV, c.NoToken, c.Mean = k.Patch, k.MLPRatio, classes, !k.QKVBias, !k.ClassToken, k.Pool == "mean"
	c.Eps, c.Dropout, c.InitStd = k.NormEps, k.Dropout, k.InitStd
	c.DropPath, _ = of.Value("model.drop_path").(float64)
	_, err := c.check()
	return c, err
}
