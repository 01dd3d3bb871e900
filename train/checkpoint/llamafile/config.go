package llamafile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"

	"github.com/gotrain/gotrain/train/foreign"
)

// hfConfig is Hugging Face's config.json, as far as it describes the model. A pointer is nil if the key is missing or null.
type hfConfig struct {
	Architectures []string   `json:"architectures,omitempty"`
	ModelType     *string    `json:"model_type"`
	HiddenSize    *int       `json:"hidden_size"`
	Intermediate  *int       `json:"intermediate_size"`
	Layers        *int       `json:"num_hidden_layers"`
	Heads         *int       `json:"num_attention_heads"`
	KVHeads       *int       `json:"num_key_value_heads"`
	HeadDim       *int       `json:"head_dim,omitempty"`
	Vocab         *int       `json:"vocab_size"`
	Context       *int       `json:"max_position_embeddings"`
	NormEps       *pyFloat   `json:"rms_norm_eps"`
	Theta         *pyFloat   `json:"rope_theta"`
	Scaling       *hfScaling `json:"rope_scaling"`
	Parameters    *hfScaling `json:"rope_parameters,omitempty"` // transformers 5: both of the above
	Act           *string    `json:"hidden_act"`
	Tied          *bool      `json:"tie_word_embeddings"`
	AttentionBias *bool      `json:"attention_bias"`
	MLPBias       *bool      `json:"mlp_bias"`
	Initializer   *pyFloat   `json:"initializer_range,omitempty"`
	BOS           ids        `json:"bos_token_id"`
	EOS           ids        `json:"eos_token_id"`
	TorchDType    *string    `json:"torch_dtype,omitempty"`
}

type hfScaling struct {
	RopeType *string  `json:"rope_type"`
	Type     *string  `json:"type,omitempty"` // the older spelling
	Factor   *pyFloat `json:"factor,omitempty"`
	Low      *pyFloat `json:"low_freq_factor,omitempty"`
	High     *pyFloat `json:"high_freq_factor,omitempty"`
	Original *int     `json:"original_max_position_embeddings,omitempty"`
	Theta    *pyFloat `json:"rope_theta,omitempty"`
	Partial  *float64 `json:"partial_rotary_factor,omitempty"`
}

// pyFloat is written with a decimal point or an exponent, as in Python, because transformers tests isinstance(factor, float).
type pyFloat float64

func (f pyFloat) MarshalJSON() ([]byte, error) {
	s := strconv.FormatFloat(float64(f), 'g', -1, 64)
	if !bytes.ContainsAny([]byte(s), ".e") {
		s += ".0"
	}
	return []byte(s), nil
}

// ids is a token id, a list of them, or null.
type ids []int

func (v *ids) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, (*[]int)(v))
	}
	var one *int
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	*v = nil
	if one != nil {
		*v = ids{*one}
	}
	return nil
}

func (v ids) MarshalJSON() ([]byte, error) {
	switch len(v) {
	case 0:
		return []byte("null"), nil
	case 1:
		return json.Marshal(v[0])
	}
	return json.Marshal([]int(v))
}

func (v ids) first() int {
	if len(v) == 0 {
		return -1
	}
	return v[0]
}

// ParseConfig reads a config.json. Missing keys have the defaults of Hugging Face's LlamaConfig (context 2048, eps 1e-6, theta 10000, as many
// key-value heads as heads, not tied). A setting that gotrain does not implement, such as biases or other kinds of rope scaling, is an error.
func ParseConfig(raw []byte) (llama.Config, error) {
	c, _, err := parseConfig(raw)
	if err != nil {
		err = fmt.Errorf("llamafile: %s: %w", ConfigFile, err)
	}
	return c, err
}

// maxConfig is larger than any config.json or params.json.
const maxConfig = 4 << 20

// ReadConfig is ParseConfig for a file, or for the config.json in a folder.
func ReadConfig(path string) (llama.Config, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, ConfigFile)
	}
	raw, err := foreign.ReadFile(path, maxConfig)
	if err != nil {
		return llama.Config{}, fmt.Errorf("llamafile: %w", err)
	}
	c, _, err := parseConfig(raw)
	if err != nil {
		err = fmt.Errorf("llamafile: %s: %w", path, err)
	}
	return c, err
}

func parseConfig(raw []byte) (c llama.Config, eos []int, err error) {
	var h hfConfig
	if err := json.Unmarshal(raw, &h); err != nil {
		return c, nil, err
	}
	if err := h.refuse(raw); err != nil {
		return c, nil, err
	}
	for _, f := range []struct {
		name string
		from *int
		to   *int
	}{{"hidden_size", h.HiddenSize, &c.Dim}, {"intermediate_size", h.Intermediate, &c.Hidden}, {"num_hidden_layers", h.Layers, &c.Layers},
		{"num_attention_heads", h.Heads, &c.Heads}, {"vocab_size", h.Vocab, &c.Vocab}} {
		if f.from == nil {
			return c, nil, fmt.Errorf("%s is missing", f.name)
		}
		*f.to = *f.from
	}
	c.KVHeads, c.HeadDim, c.Context = or(h.KVHeads, c.Heads), or(h.HeadDim, 0), or(h.Context, 2048)
	c.NormEps, c.Tied = float64(or(h.NormEps, 1e-6)), or(h.Tied, false)
	c.BOS, c.EOS = h.BOS.first(), h.EOS.first()
	if err := h.rope(&c); err != nil {
		return c, nil, err
	}
	if err := limits(c); err != nil {
		return c, nil, err
	}
	return plain(c), h.EOS, nil
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// refuse reports settings that gotrain does not implement.
func (h hfConfig) refuse(raw []byte) error {
	var errs []error
	no := func(bad bool, format string, a ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, a...))
		}
	}
	const arch = "LlamaForCausalLM"
	no(or(h.ModelType, "llama") != "llama", "model_type is %q, only llama is supported", or(h.ModelType, ""))
	no(len(h.Architectures) > 0 && !slices.Contains(h.Architectures, arch) && !slices.Contains(h.Architectures, "LLaMAForCausalLM"),
		"architectures is %q, only %s is supported", h.Architectures, arch)
	no(or(h.AttentionBias, false), "attention_bias is true: projections with biases are not supported")
	no(or(h.MLPBias, false), "mlp_bias is true: projections with biases are not supported")
	no(or(h.Act, "silu") != "silu" && or(h.Act, "") != "swish", "hidden_act is %q, only silu is supported", or(h.Act, ""))
	errs = append(errs, refuseForeign(raw)...)
	var nested struct {
		Scaling    json.RawMessage `json:"rope_scaling"`
		Parameters json.RawMessage `json:"rope_parameters"`
	}
	if json.Unmarshal(raw, &nested) == nil {
		errs = append(errs, refuseScaling("rope_scaling", nested.Scaling)...)
		errs = append(errs, refuseScaling("rope_parameters", nested.Parameters)...)
	}
	return errors.Join(errs...)
}

// rope merges the two locations and the two spellings of rotary settings.
func (h hfConfig) rope(c *llama.Config) error {
	var all []*hfScaling
	var theta *pyFloat
	for _, s := range []*hfScaling{{Theta: h.Theta}, h.Scaling, h.Parameters} {
		if s == nil {
			continue
		}
		if s.Theta != nil && theta != nil && *theta != *s.Theta {
			return fmt.Errorf("rope_theta is both %g and %g", *theta, *s.Theta)
		}
		if s.Theta != nil {
			theta = s.Theta
		}
		if s == h.Scaling || s == h.Parameters {
			all = append(all, s)
		}
	}
	c.Theta = float64(or(theta, 10000))
	for _, s := range all {
		got, err := s.scaling()
		if err != nil {
			return err
		}
		if c.Scaling.On() && got.On() && got != c.Scaling {
			return errors.New("rope_scaling and rope_parameters differ")
		}
		if got.On() {
			c.Scaling = got
		}
	}
	return nil
}

func (s hfScaling) scaling() (llama.Scaling, error) {
	kind := or(s.RopeType, or(s.Type, "default"))
	if s.RopeType != nil && s.Type != nil && *s.RopeType != *s.Type {
		return llama.Scaling{}, fmt.Errorf("rope_scaling has rope_type %q and type %q", *s.RopeType, *s.Type)
	}
	if or(s.Partial, 1) != 1 {
		return llama.Scaling{}, fmt.Errorf("partial_rotary_factor is %g, only 1 is supported", *s.Partial)
	}
	switch kind {
	case "default":
		if s.Factor != nil && *s.Factor != 1 {
			return llama.Scaling{}, fmt.Errorf("rope_scaling has a factor of %g but no type", *s.Factor)
		}
		if s.RopeType == nil && s.Type == nil && (s.Low != nil || s.High != nil || s.Original != nil) {
			return llama.Scaling{}, errors.New("rope_scaling has frequencies but no type")
		}
		return llama.Scaling{}, nil
	case "llama3":
		if s.Factor == nil || s.Low == nil || s.High == nil || s.Original == nil {
			return llama.Scaling{}, errors.New("rope_scaling llama3 requires factor, low_freq_factor, high_freq_factor and original_max_position_embeddings")
		}
		if *s.Factor < 1 {
			return llama.Scaling{}, fmt.Errorf("rope_scaling has a factor of %g, must be at least 1", *s.Factor)
		}
		return llama.Scaling{Factor: float64(*s.Factor), LowFreq: float64(*s.Low), HighFreq: float64(*s.High), Original: *s.Original}, nil
	}
	return llama.Scaling{}, fmt.Errorf("rope_scaling of type %q is not supported, only llama3 is", kind)
}

// torchNames are the types in Hugging Face's spelling.
var torchNames = map[safetensors.DType]string{safetensors.F32: "float32", safetensors.BF16: "bfloat16", safetensors.F16: "float16"}

// EncodeConfig makes a config.json; dtype is the type in which the weights are stored. ParseConfig reads the same configuration from it.
func EncodeConfig(c llama.Config, dtype safetensors.DType) ([]byte, error) {
	return encodeConfig(c, dtype, nil)
}

func encodeConfig(c llama.Config, dtype safetensors.DType, eos []int) ([]byte, error) {
	if err := limits(c); err != nil {
		return nil, fmt.Errorf("llamafile: %w", err)
	}
	kind, act, no, head, eps, theta, init := "llama", "silu", false, c.Head(), pyFloat(c.NormEps), pyFloat(c.Theta), pyFloat(0.02)
	h := hfConfig{
		Architectures: []string{"LlamaForCausalLM"}, ModelType: &kind, HiddenSize: &c.Dim, Intermediate: &c.Hidden, Layers: &c.Layers, Heads: &c.Heads,
		KVHeads: &c.KVHeads, HeadDim: &head, Vocab: &c.Vocab, Context: &c.Context, NormEps: &eps, Theta: &theta, Act: &act, Tied: &c.Tied,
		AttentionBias: &no, MLPBias: &no, Initializer: &init, BOS: oneID(c.BOS), EOS: endIDs(c, eos),
	}
	if s := c.Scaling; s.On() {
		kind, factor, low, high := "llama3", pyFloat(s.Factor), pyFloat(s.LowFreq), pyFloat(s.HighFreq)
		h.Scaling = &hfScaling{RopeType: &kind, Factor: &factor, Low: &low, High: &high, Original: &s.Original}
	}
	name, ok := torchNames[dtype]
	if !ok {
		return nil, fmt.Errorf("llamafile: weights cannot be stored as %s", dtype)
	}
	h.TorchDType = &name
	return indent(h)
}

func oneID(id int) ids {
	if id < 0 {
		return nil
	}
	return ids{id}
}

// endIDs returns all known ids that end a text.
func endIDs(c llama.Config, eos []int) ids {
	if len(eos) > 1 && eos[0] == c.EOS {
		return eos
	}
	return oneID(c.EOS)
}

// encodeGeneration makes generation_config.json, from which transformers' generate takes the ids.
func encodeGeneration(c llama.Config, eos []int) ([]byte, error) {
	return indent(struct {
		FromModelConfig bool `json:"_from_model_config"`
		BOS             ids  `json:"bos_token_id"`
		EOS             ids  `json:"eos_token_id"`
	}{true, oneID(c.BOS), endIDs(c, eos)})
}

func indent(v any) ([]byte, error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	return append(raw, '\n'), err
}
