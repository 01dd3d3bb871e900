package llama

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/models"
)

// Keys are the keys of the section [llama] of a recipe, with the tags that recipes.Recipe describes.
type Keys struct {
	Size         string  `toml:"size" default:"" oneof:"|llama2-7b|llama2-13b|llama2-70b|llama3-8b|llama3-70b|llama3.1-8b|llama3.1-70b|llama3.1-405b|llama3.2-1b|llama3.2-3b|stories260k|stories15m|stories42m|stories110m|tiny" doc:"A published model (arXiv 2307.09288, 2407.21783), a TinyStories model (karpathy/tinyllamas), or tiny. Empty: set the dimensions below."`
	Dim          int     `toml:"dim" default:"0" min:"0" max:"65536" doc:"Width of the residual stream."`
	Hidden       int     `toml:"hidden" default:"0" min:"0" max:"262144" doc:"Width of the feed-forward layer; 0 without a size: 8/3 of dim, rounded up to a multiple of 32."`
	Layers       int     `toml:"layers" default:"0" min:"0" max:"1024" doc:"Number of layers."`
	Heads        int     `toml:"heads" default:"0" min:"0" max:"1024" doc:"Query heads."`
	KVHeads      int     `toml:"kv_heads" default:"0" min:"0" max:"1024" doc:"Key and value heads; must divide heads (arXiv 2305.13245). 0 without a size: equal to heads."`
	HeadDim      int     `toml:"head_dim" default:"0" min:"0" max:"1024" doc:"Width of a head; 0: dim / heads."`
	Vocab        int     `toml:"vocab" default:"0" unit:"tokens" min:"0" max:"2097152" doc:"Vocabulary size; 0 without a size: that of the tokenizer."`
	Context      int     `toml:"context" default:"0" unit:"tokens" min:"0" max:"16777216" doc:"Longest sequence that the model supports; 0 without a size: text.sequence."`
	RopeTheta    float64 `toml:"rope_theta" default:"0" min:"0" doc:"Base of the rotary embedding's frequencies (arXiv 2104.09864); 0 without a size: 10000."`
	RopeFactor   float64 `toml:"rope_factor" default:"0" min:"0" max:"1024" doc:"Llama 3.1's RoPE scaling: low frequencies are divided by this factor; 0: that of the size, 1: no scaling."`
	RopeLow      float64 `toml:"rope_low_freq_factor" default:"1" over:"0" doc:"With rope_factor: frequencies with wavelengths above rope_original_context / this value are divided."`
	RopeHigh     float64 `toml:"rope_high_freq_factor" default:"4" over:"0" doc:"With rope_factor: frequencies with wavelengths below rope_original_context / this value are unchanged."`
	RopeOriginal int     `toml:"rope_original_context" default:"8192" unit:"tokens" min:"1" doc:"With rope_factor: the context length before scaling."`
	NormEps      float64 `toml:"norm_eps" default:"0" min:"0" max:"1" doc:"Added to the mean square in norms; 0: that of the size, or 1e-5."`
	Tied         string  `toml:"tied_embeddings" default:"auto" oneof:"auto|true|false" doc:"Whether the output layer shares the embedding's weights. auto: as in the size; true without a size."`
	InitStd      float64 `toml:"init_std" default:"0.02" over:"0" max:"1" doc:"Standard deviation of the normal distribution that initialises the weights."`
	InitDepth    bool    `toml:"init_depth_scaled" default:"true" doc:"Scale the initial standard deviation of projections back into the residual stream by 1/sqrt(2 * layers)."`
}

// recipe describes the family to recipes.
func recipe() *models.Recipe {
	return &models.Recipe{Reads: models.Text, Layers: true, Section: models.Keys[Keys]{
		Doc:   `The network when model.name = "llama": a named size, or explicit dimensions. A dimension beside a size overrides it; 0 keeps the size's.`,
		Check: (*Keys).check,
	}.Section()}
}

func (k *Keys) check(of models.Values) (out []models.Problem) {
	if k.Size == "" && (of.Value("model.init_from") == "" || k.Dim > 0) {
		for _, d := range []struct {
			key string
			v   int
		}{{"llama.dim", k.Dim}, {"llama.layers", k.Layers}, {"llama.heads", k.Heads}} {
			if d.v == 0 {
				out = append(out, models.Problem{Key: d.key, Msg: "is required when llama.size is empty",
					Hint: `set it, or a size such as llama.size = "stories15m"`})
			}
		}
		if k.Context == 0 && of.Value("text.sequence") == 0 {
			out = append(out, models.Problem{Key: "text.sequence", Msg: "is required when neither llama.size nor llama.context is set"})
		}
	}
	if k.RopeFactor > 1 && k.RopeHigh <= k.RopeLow {
		out = append(out, models.Problem{Key: "llama.rope_high_freq_factor",
			Msg: fmt.Sprintf("must be above llama.rope_low_freq_factor = %g, got %g", k.RopeLow, k.RopeHigh)})
	}
	return out
}
