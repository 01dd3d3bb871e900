// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/bench/shapes"
)

// recipeCommand trains by the recipe that has been put into the run's folder.
const recipeCommand = "{bin} run {dir}/recipe.toml"

// markSeq is the length of sequence that the bare Llama is written for.
const markSeq = 256

// llama measures training steps of Llamas: gotrain, its kernels alone, the peer, and the bare program.
func (h *harness) llama() error {
	settings, err := h.o.llamaSettings()
	if err != nil {
		return err
	}
	mark := outside("C reference", "BENCH_MARK_LLAMA", func(s setting) []string {
		return []string{s.Model, strconv.Itoa(s.Batch), s.DType, strconv.Itoa(s.Steps)}
	})
	mark.fits = func(s setting) bool { return s.Seq == markSeq }
	peer := h.pytorch("llama_torch.py", func(s setting) []string { return []string{"--shape", s.Model, "--seq", strconv.Itoa(s.Seq)} })
	field := append([]contestant{h.gotrain(recipeCommand, writeRecipe), h.kernels()}, peer...)
	field = append(field, h.jax(func(s setting) string { return s.Model }), mark)
	return h.race(race{"Llama", "tok/s", settings, field})
}

// kernels is bench/kernels: the step of a trainer that costs nothing.
func (h *harness) kernels() contestant {
	bin, missing := h.build("kernels", "./bench/kernels")
	if missing != "" {
		return contestant{name: "kernels", missing: missing}
	}
	return copies("kernels", "", func(s setting) []string {
		return []string{
			bin,
			"-shape",
			s.Model,
			"-seq",
			strconv.Itoa(s.Seq),
			"-batch",
			strconv.Itoa(s.Batch),
			"-dtype",
			s.DType,
			"-threads",
			strconv.Itoa(s.Threads),
			"-steps",
			strconv.Itoa(s.Steps),
		}
	})
}

// llamaSettings are the ways to train a Llama that the flags name.
func (o options) llamaSettings() ([]setting, error) {
	models := strings.Split(o.shapes, ",")
	seqs, err := numbers("-seq", o.seq)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if _, err := shapes.Llama(m, seqs[0]); err != nil {
			return nil, fmt.Errorf("-shape: %w", err)
		}
	}
	return o.settings(models, []int{4, 8, 16}, seqs)
}

// writeRecipe puts the recipe of a setting into the folder of its run.
func writeRecipe(dir string, s setting) error {
	text, err := llamaRecipe(dir, s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "recipe.toml"), []byte(text), 0o644)
}

// llamaRecipe trains a Llama from random weights on random tokens, in memory, with AdamW of a constant rate, without limit of the norm, and
// writes nothing but the metrics: what the peer's program does.
func llamaRecipe(dir string, s setting) (string, error) {
	c, err := shapes.Llama(s.Model, s.Seq)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`[run]
name = "bench"
output_dir = %q
steps = %d

[model]
name = "llama"

[llama]
dim = %d
hidden = %d
layers = %d
heads = %d
kv_heads = %d
vocab = %d
context = %d
tied_embeddings = "%v"

[data]
kind = "synthetic"

[text]
sequence = %d

[train]
ranks = %d
threads_per_rank = %d
batch_per_rank = %d
dtype = %q
memory_limit_mb = %d

[optim]
name = "adamw"
lr = 3e-4

[schedule]
kind = "constant"

[eval]
enabled = false

[checkpoint]
enabled = false
`, dir, s.Warm+s.Steps, c.Dim, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.Vocab, c.Context, c.Tied, s.Seq, s.World, s.Threads, s.Batch, s.DType, s.Memory), nil
}
