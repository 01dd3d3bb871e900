package llamafile

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// minimal is a config.json with one extra key.
func minimal(more string) string {
	s := `{"hidden_size":32,"intermediate_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100`
	if more != "" {
		s += "," + more
	}
	return s + "}"
}

// Every known model survives a round trip through config.json, and through params.json with the metadata.
func TestConfigsOfAllNames(t *testing.T) {
	for _, name := range llama.Names() {
		c, err := llama.Named(name)
		must(t, err)
		raw, err := EncodeConfig(c, safetensors.BF16)
		must(t, err)
		if back, err := ParseConfig(raw); err != nil || back != c {
			t.Errorf("%s: %+v, %v, want %+v from\n%s", name, back, err, c, raw)
		}
		params, meta, err := encodeParams(c)
		must(t, err)
		shapes := map[string][]int{"tok_embeddings.weight": {c.Vocab, c.Dim}, "layers.0.feed_forward.w1.weight": {c.Hidden, c.Dim}}
		if !c.Tied {
			shapes["output.weight"] = []int{c.Vocab, c.Dim}
		}
		if back, err := parseParams(params, shapes, meta); err != nil || back != c {
			t.Errorf("%s: %+v, %v, want %+v from\n%s", name, back, err, c, params)
		}
		if back, err := parseParams(params, shapes, nil); !strings.HasPrefix(name, "tiny") && (err != nil || back != c) {
			t.Errorf("%s without metadata: %+v, %v, want %+v from\n%s", name, back, err, c, params)
		}
	}
}

// The files as Meta publishes them (arXiv 2407.21783 and the model cards), and as Hugging Face spells the same in two generations of transformers.
func TestPublishedConfigs(t *testing.T) {
	want, _ := llama.Named("llama3.2-1b")
	body := `"architectures":["LlamaForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":128000,"eos_token_id":128001,
		"head_dim":64,"hidden_act":"silu",
		"hidden_size":2048,"initializer_range":0.02,"intermediate_size":8192,"max_position_embeddings":131072,"mlp_bias":false,
			"model_type":"llama","num_attention_heads":32,
		"num_hidden_layers":16,"num_key_value_heads":8,"pretraining_tp":1,"rms_norm_eps":1e-05,"tie_word_embeddings":true,
			"torch_dtype":"bfloat16","use_cache":true,"vocab_size":128256,`
	scaling := `"factor":32.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192`
	for what, tail := range map[string]string{
		"rope_type":      `"rope_theta":500000.0,"rope_scaling":{` + scaling + `,"rope_type":"llama3"}`,
		"type":           `"rope_theta":500000.0,"rope_scaling":{` + scaling + `,"type":"llama3"}`,
		"transformers 5": `"rope_parameters":{` + scaling + `,"rope_type":"llama3","rope_theta":500000.0}`,
	} {
		if c, err := ParseConfig([]byte("{" + body + tail + "}")); err != nil || c != want {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	for name, raw := range map[string]string{
		"llama2-7b": `{"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-05, "vocab_size": -1}`,
		"llama2-70b": `{"dim": 8192, "multiple_of": 4096, "ffn_dim_multiplier": 1.3, "n_heads": 64, "n_kv_heads": 8, "n_layers": 80,
			"norm_eps": 1e-05, "vocab_size": -1}`,
		"llama3-8b": `{"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024,
			"ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "rope_theta": 500000.0}`,
		"llama3.1-8b": `{"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "ffn_dim_multiplier": 1.3,
			"multiple_of": 1024, "norm_eps": 1e-05, "rope_theta": 500000.0, "use_scaled_rope": true}`,
		"llama3.2-1b": `{"dim": 2048, "n_layers": 16, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "ffn_dim_multiplier": 1.5,
			"multiple_of": 256, "norm_eps": 1e-05, "rope_theta": 500000.0, "use_scaled_rope": true}`,
	} {
		want, _ := llama.Named(name)
		shapes := map[string][]int{"tok_embeddings.weight": {want.Vocab, want.Dim}, "layers.0.feed_forward.w1.weight": {want.Hidden, want.Dim}}
		if !want.Tied {
			shapes["output.weight"] = shapes["tok_embeddings.weight"]
		}
		if c, err := parseParams([]byte(raw), shapes, nil); err != nil || c != want {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestConfigDefaultsAndIDs(t *testing.T) {
	c, err := ParseConfig([]byte(minimal("")))
	want := llama.Config{Dim: 32, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 4, Vocab: 100, Context: 2048, Theta: 1e4, NormEps: 1e-6, BOS: -1, EOS: -1}
	if err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	c, eos, err := parseConfig([]byte(minimal(`"bos_token_id":5,"eos_token_id":[7,8,9]`)))
	if err != nil || c.BOS != 5 || c.EOS != 7 || len(eos) != 3 {
		t.Errorf("%+v %v %v", c, eos, err)
	}
	raw, err := encodeConfig(c, safetensors.F32, eos)
	must(t, err)
	if _, again, err := parseConfig(raw); err != nil || len(again) != 3 {
		t.Errorf("ids %v, %v", again, err)
	}
	for _, want := range []string{`"rope_theta": 10000.0`, `"rms_norm_eps": 1e-06`, `"rope_scaling": null`, `"torch_dtype": "float32"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not in\n%s", want, raw)
		}
	}
}

// A setting that affects results and is not implemented is an error, in whatever form; a value without effect is not.
func TestConfigRefusesForeignSettings(t *testing.T) {
	for more, want := range map[string]string{
		`"text_config":{"hidden_size":64}`:                                          "text_config is",
		`"sliding_window":1024`:                                                     "sliding_window is 1024, below the context of 2048",
		`"sliding_window":"1024"`:                                                   "which gotrain does not understand",
		`"layer_types":["full_attention","sliding_attention"]`:                      `layer 1 is "sliding_attention"`,
		`"partial_rotary_factor":0.5`:                                               "partial_rotary_factor is 0.5",
		`"quantization":{"bits":4}`:                                                 "quantised weights cannot be read",
		`"attention_bias":"true"`:                                                   "cannot unmarshal",
		`"hidden_act":["silu"]`:                                                     "cannot unmarshal",
		`"hidden_activation":"gelu_pytorch_tanh"`:                                   "hidden_activation is",
		`"final_logit_softcapping":30.0`:                                            "final_logit_softcapping is 30.0",
		`"embedding_multiplier":12.0`:                                               "embedding_multiplier is 12.0",
		`"num_local_experts":8`:                                                     "num_local_experts is 8",
		`"rope_scaling":"llama3"`:                                                   "cannot unmarshal",
		`"rope_scaling":{"high_freq_factor":4.0}`:                                   "has frequencies but no type",
		`"rope_scaling":{"rope_type":"default","attention_factor":1.2}`:             "rope_scaling: gotrain does not understand attention_factor",
		`"rope_parameters":{"full_attention":{"rope_type":"default"}}`:              "rope_parameters: gotrain does not understand full_attention",
		`"rope_parameters":{"full_attention":{"rope_theta":1e6}},"moe":{"top_k":2}`: "moe is",
	} {
		if c, err := ParseConfig([]byte(minimal(more))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", more, c, err, want)
		}
	}
	for _, more := range []string{
		`"text_config":null,"quantization_config":{},"num_local_experts":0,"qk_norm":false`, `"sliding_window":2048`,
		`"sliding_window":1024,"use_sliding_window":false`,
		`"embedding_multiplier":1.0,"partial_rotary_factor":1`, `"layer_types":["full_attention"]`, `"rope_scaling":{}`,
		`"rope_scaling":null,"pretraining_tp":2,"use_cache":true`,
		`"hidden_activation":"silu","transformers_version":"4.48.0","attention_dropout":0.1`,
	} {
		if _, err := ParseConfig([]byte(minimal(more))); err != nil {
			t.Errorf("%s: %v", more, err)
		}
	}
	shapes := map[string][]int{"layers.0.feed_forward.w1.weight": {64, 32}}
	if _, err := parseParams([]byte(`{"dim":32,"n_layers":2,"n_heads":4,"vocab_size":100,"moe":{"num_experts":8}}`), shapes, nil); err == nil ||
		!strings.Contains(err.Error(), "moe is") {
		t.Errorf("params.json with experts: %v", err)
	}
}

func TestConfigRefuses(t *testing.T) {
	for more, want := range map[string]string{
		`"model_type":"mistral"`:                                `model_type is "mistral"`,
		`"architectures":["GPT2LMHeadModel"]`:                   "only LlamaForCausalLM",
		`"attention_bias":true`:                                 "attention_bias is true",
		`"mlp_bias":true`:                                       "mlp_bias is true",
		`"hidden_act":"gelu"`:                                   `hidden_act is "gelu"`,
		`"rope_scaling":{"type":"linear","factor":2.0}`:         `type "linear" is not supported`,
		`"rope_scaling":{"type":"dynamic","factor":2.0}`:        `type "dynamic" is not supported`,
		`"rope_scaling":{"rope_type":"yarn","factor":2.0}`:      `type "yarn" is not supported`,
		`"rope_scaling":{"factor":2.0}`:                         "a factor of 2 but no type",
		`"rope_scaling":{"rope_type":"llama3","factor":2.0}`:    "llama3 requires factor",
		`"rope_scaling":{"rope_type":"llama3","type":"yarn"}`:   `rope_type "llama3" and type "yarn"`,
		`"rope_theta":1e4,"rope_parameters":{"rope_theta":2e4}`: "both 10000 and 20000",
		`"rope_parameters":{"partial_rotary_factor":0.5}`:       "partial_rotary_factor is 0.5",
		`"quantization_config":{"quant_method":"gptq"}`:         "quantised weights cannot be read",
		`"num_key_value_heads":3`:                               "4 heads do not divide among 3",
		`"num_key_value_heads":-4`:                              "kv_heads is -4",
		`"max_position_embeddings":0`:                           "context is 0",
		`"head_dim":7`:                                          "the width of a head is 7",
		`"vocab_size":99999999999`:                              "but the limit is",
		`"vocab_size":1e300`:                                    "cannot unmarshal",
		`"vocab_size":12.5`:                                     "cannot unmarshal",
		`"num_hidden_layers":1000000000`:                        "layers is 1000000000, but the limit is",
		`"hidden_size":268435456,"num_hidden_layers":65536`:     "parameters is not possible",
		`"rms_norm_eps":0`:                                      "norm_eps is 0",
		`"rope_theta":-1`:                                       "theta is -1",
		`"hidden_size":"32"`:                                    "cannot unmarshal string",
		`"eos_token_id":"x"`:                                    "cannot unmarshal",
		`"tie_word_embeddings":true} {"a":1`:                    "invalid character",
	} {
		if c, err := ParseConfig([]byte(minimal(more))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", more, c, err, want)
		}
	}
	if _, err := ParseConfig([]byte(`{"hidden_size":1}`)); err == nil || !strings.Contains(err.Error(), "intermediate_size is missing") {
		t.Errorf("%v", err)
	}
	for _, c := range []llama.Config{{}, {Dim: math.MaxInt}, {Dim: -1}} {
		if _, err := EncodeConfig(c, safetensors.F32); err == nil {
			t.Errorf("%+v is written", c)
		}
	}
	if _, err := ReadConfig(t.TempDir()); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("%v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || os.IsNotExist(err) {
			return err
		}
		err = u.Unwrap()
	}
}

func TestFeedForwardRule(t *testing.T) {
	for _, c := range [][2]int{{64, 172}, {24, 20}, {100, 7}, {4096, 11008}, {8192, 28672}, {17, 1}, {4096, 14337}, {5, 100000}} {
		m, f := feedForwardRule(c[0], c[1])
		if got := llama.FeedForward(c[0], f, m); got != c[1] {
			t.Errorf("%v: multiple_of %d, factor %g make %d", c, m, f, got)
		}
	}
}

// For any bytes, the parser returns a configuration with valid sizes that can be written again, or an error.
func FuzzConfig(f *testing.F) {
	f.Add(minimal(""))
	f.Add(
		minimal(
			`"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192},
				"eos_token_id":[1,2]`,
		),
	)
	f.Add(minimal(`"head_dim":null,"rope_parameters":{"rope_theta":1e4,"rope_type":"default"}`))
	f.Add(`{"hidden_size":9223372036854775807}`)
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := ParseConfig([]byte(raw))
		if err != nil {
			return
		}
		if c.Params() <= 0 || c.Heads*c.Head() <= 0 {
			t.Fatalf("%+v has %d parameters", c, c.Params())
		}
		again, err := EncodeConfig(c, safetensors.F32)
		must(t, err)
		if back, err := ParseConfig(again); err != nil || back != c && c.BOS >= -1 && c.EOS >= -1 {
			t.Fatalf("%+v comes back as %+v, %v", c, back, err)
		}
	})
}
