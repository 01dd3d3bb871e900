#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Generation speed of llama.cpp, for bench/compare: the weights of a Hugging Face folder, as they are, in llama.cpp's format.

    generate_llamacpp.py FOLDER f32|bf16 THREADS TOKENS

It needs the packages llama-cpp-python (built from source for this processor), gguf and safetensors. FOLDER/llamacpp-TYPE.gguf is written once. The prompt
is one token; the likeliest token is taken, and the time is llama.cpp's own, of single tokens after the prompt, without Python. One JSON line.
"""
import json
import os
import sys

import numpy as np


def permute(w, heads):
    """Rows of a head from Hugging Face's order of rotary pairs, i with i + d/2, to llama.cpp's, 2i with 2i + 1."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def tensors(folder, config):
    """Name and array of each tensor, under llama.cpp's names."""
    from safetensors.numpy import load_file

    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    parts = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "ffn_norm"}
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    for name, w in load_file(os.path.join(folder, "model.safetensors")).items():
        if name in whole:
            yield whole[name], w
            continue
        _, _, layer, rest = name.split(".", 3)
        part = parts[rest.removesuffix(".weight")]
        if part in ("attn_q", "attn_k"):
            w = permute(w, heads if part == "attn_q" else kv)
        yield f"blk.{layer}.{part}.weight", np.ascontiguousarray(w)


def convert(folder, dtype, path):
    """Writes the weights of the folder in llama.cpp's format; matrices have the type, vectors are float32."""
    import gguf

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        c = json.load(f)
    w = gguf.GGUFWriter(path + ".part", "llama")
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    w.add_rope_dimension_count(c["hidden_size"] // c["num_attention_heads"])
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_vocab_size(c["vocab_size"])
    w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16 if dtype == "bf16" else gguf.LlamaFileType.ALL_F32)
    w.add_tokenizer_model("llama")
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    kinds = [gguf.TokenType.UNKNOWN] + 2 * [gguf.TokenType.CONTROL] + 256 * [gguf.TokenType.BYTE]
    for i in range(len(words), c["vocab_size"]):
        words.append(chr(0x3400 + i))
        kinds.append(gguf.TokenType.NORMAL)
    w.add_token_list(words)
    w.add_token_scores([0.0] * len(words))
    w.add_token_types(kinds)
    for name, t in tensors(folder, c):
        t = t.astype(np.float32)
        if dtype == "bf16" and t.ndim > 1:
            w.add_tensor(name, gguf.quants.quantize(t, gguf.GGMLQuantizationType.BF16), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            w.add_tensor(name, t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    os.rename(path + ".part", path)


def generate(path, threads, tokens):
    """Tokens a second, and the tokens."""
    import ctypes

    import llama_cpp as l

    l.llama_log_set(ctypes.cast(None, l.llama_log_callback), ctypes.c_void_p(0))
    l.llama_backend_init()
    mp = l.llama_model_default_params()
    mp.n_gpu_layers = 0
    model = l.llama_load_model_from_file(path.encode(), mp) if not hasattr(l, "llama_model_load_from_file") else l.llama_model_load_from_file(path.encode(), mp)
    if not model:
        raise SystemExit(f"llama.cpp cannot load {path}")
    cp = l.llama_context_default_params()
    cp.n_ctx, cp.n_batch, cp.n_threads, cp.n_threads_batch, cp.no_perf = tokens + 8, 8, threads, threads, False
    ctx = l.llama_init_from_model(model, cp) if hasattr(l, "llama_init_from_model") else l.llama_new_context_with_model(model, cp)
    vocab = l.llama_vocab_n_tokens(l.llama_model_get_vocab(model))
    token, out = 3 + ord("a"), []
    for _ in range(tokens):
        one = (l.llama_token * 1)(token)
        if l.llama_decode(ctx, l.llama_batch_get_one(one, 1)) != 0:
            raise SystemExit("llama.cpp cannot decode")
        token = int(np.ctypeslib.as_array(l.llama_get_logits(ctx), shape=(vocab,)).argmax())
        out.append(token)
        if len(out) == 8:  # memory is touched and threads are awake
            l.llama_perf_context_reset(ctx)
    perf = l.llama_perf_context(ctx)
    return perf.n_eval / perf.t_eval_ms * 1e3, out


def main():
    if len(sys.argv) != 5 or sys.argv[2] not in ("f32", "bf16"):
        raise SystemExit(__doc__)
    folder, dtype, threads, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    import llama_cpp

    path = os.path.join(folder, f"llamacpp-{dtype}.gguf")
    if not os.path.exists(path):
        convert(folder, dtype, path)
    rate, out = generate(path, threads, tokens)
    print(json.dumps({"peer": "llama.cpp", "version": llama_cpp.__version__, "tokens": out, "tokens_per_second": round(rate, 2)}))


if __name__ == "__main__":
    main()
