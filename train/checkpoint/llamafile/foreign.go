package llamafile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unknownSettings are settings of other models that change results and that gotrain does not implement, with the values that have no effect. null,
// false, 0, "", [] and {} have no effect either. A file with any other value is rejected, never read without the setting. Settings that only concern
// training, serving or files are ignored.
var unknownSettings = map[string][]string{
	// nested models, and models that wrap this one
	"text_config": nil, "llm_config": nil, "language_config": nil, "vision_config": nil, "audio_config": nil, "encoder": nil, "decoder": nil,
	"is_encoder_decoder": nil,
	// weights that are not stored as numbers
	"quantization_config": nil, "quantization": nil, "quantization_args": nil, "compression_config": nil, "lora_args": nil,
	// attention
	"attn_logit_softcapping": nil, "attention_multiplier": nil, "query_pre_attn_scalar": nil, "clip_qkv": nil, "qk_norm": nil,
	"use_qk_norm": nil, "qk_layernorm": nil,
	"qkv_bias": nil, "use_bias": nil, "bias": nil, "o_bias": nil, "attention_out_bias": nil, "attn_temperature_tuning": nil,
	"attention_chunk_size": nil, "attention_sinks": nil, "q_lora_rank": nil, "kv_lora_rank": nil,
	// positions
	"no_rope_layers": nil, "no_rope_layer_interval": nil, "rope_local_base_freq": nil, "rotary_pct": {"1", "1.0"},
	"rotary_percent": {"1", "1.0"}, "partial_rotary_factor": {"1", "1.0"},
	"rope_scaling_factor": {"1", "1.0"}, "alibi": nil, "use_alibi": nil, "position_embedding_type": {`"rope"`, `"rotary"`},
	"rope_interleaved": nil,
	// layers
	"num_experts": nil, "num_local_experts": nil, "n_routed_experts": nil, "moe": nil, "moe_args": nil, "num_nextn_predict_layers": nil,
	"cross_attention_layers": nil,
	"hidden_activation":      {`"silu"`, `"swish"`}, "activation_function": {`"silu"`, `"swish"`}, "post_norm": nil, "parallel_attn": nil,
	"use_parallel_residual": nil, "layer_norm_eps": nil, "layer_norm_epsilon": nil,
	"norm_type": {`"rmsnorm"`, `"rms_norm"`}, "norm_topk_prob": nil,
	// scales
	"embedding_multiplier": {"1", "1.0"}, "residual_multiplier": {"1", "1.0"}, "logits_scaling": {"1", "1.0"}, "logit_scale": {"1", "1.0"},
	"final_logit_softcapping": nil,
	"scale_emb":               {"1", "1.0"}, "scale_depth": nil, "dim_model_base": nil, "mup_width_scale": {"1", "1.0"},
}

// nothing are the values that have no effect, whatever the setting.
var nothing = []string{"null", "false", "0", "0.0", `""`, "[]", "{}"}

// refuseForeign reports the settings of raw, a JSON object, that gotrain does not implement.
func refuseForeign(raw []byte) (errs []error) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil // the reader of the object reports it
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		neutral, known := unknownSettings[key]
		value := strings.Join(strings.Fields(string(all[key])), " ")
		if known && !slices.Contains(nothing, value) && !slices.Contains(neutral, value) {
			errs = append(errs, fmt.Errorf("%s is %.60s: not supported%s", key, value, foreignHint(key)))
		}
	}
	return append(errs, refuseWindow(all)...)
}

func foreignHint(key string) string {
	switch {
	case strings.HasPrefix(key, "quantization"), key == "compression_config", key == "lora_args":
		return ": quantised weights cannot be read\nhint: use the original weights"
	case strings.HasSuffix(key, "_config"):
		return "\nhint: export the language model alone, whose settings are not nested"
	}
	return ""
}

// refuseWindow reports attention that sees less than the context.
func refuseWindow(all map[string]json.RawMessage) (errs []error) {
	var window, context *float64
	used := true
	for key, to := range map[string]any{"sliding_window": &window, "max_position_embeddings": &context, "use_sliding_window": &used} {
		if raw, ok := all[key]; ok && json.Unmarshal(raw, to) != nil {
			errs = append(errs, fmt.Errorf("%s is %.60s, which gotrain does not understand", key, raw))
		}
	}
	if used && window != nil && *window > 0 && *window < or(context, 2048) {
		errs = append(errs, fmt.Errorf("sliding_window is %g, below the context of %g: attention within a window is not supported", *window, or(context, 2048)))
	}
	var kinds []string
	if raw, ok := all["layer_types"]; ok && json.Unmarshal(raw, &kinds) != nil {
		errs = append(errs, fmt.Errorf("layer_types is %.60s, which gotrain does not understand", raw))
	}
	for i, k := range kinds {
		if k != "full_attention" {
			return append(errs, fmt.Errorf("layer_types: layer %d is %q, only full_attention is supported", i, k))
		}
	}
	return errs
}

// refuseScaling reports keys of rope_scaling or rope_parameters that hfScaling does not know.
func refuseScaling(name string, raw json.RawMessage) (errs []error) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	known := []string{"rope_type", "type", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
		"rope_theta", "partial_rotary_factor"}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(known, key) && string(all[key]) != "null" {
			errs = append(errs, fmt.Errorf("%s: gotrain does not understand %s", name, key))
		}
	}
	return errs
}
