// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gotrain/gotrain/graph/models/vit"
)

// vit measures training steps of vision transformers: gotrain and the peer.
func (h *harness) vit() error {
	settings, err := h.o.vitSettings()
	if err != nil {
		return err
	}
	peer := h.pytorch("vit_torch.py", func(s setting) []string { return []string{"--size", s.Model} })
	return h.race(race{"ViT 224x224", "img/s", settings, append([]contestant{h.gotrain(recipeCommand, writeViTRecipe)}, peer...)})
}

// vitSettings are the ways to train a vision transformer that the flags name.
func (o options) vitSettings() ([]setting, error) {
	sizes := strings.Split(o.sizes, ",")
	for _, s := range sizes {
		if vit.Sized(s).Dim == 0 {
			return nil, fmt.Errorf("-size %q: write deit-ti, deit-s, deit-b, vit-ti, vit-s, vit-b or vit-l, with commas between them", s)
		}
	}
	return o.settings(sizes, []int{16}, []int{0})
}

// writeViTRecipe puts the recipe of a setting into the folder of its run. It trains on synthetic images, in memory, with AdamW of a constant rate, without
// limit of the norm, and writes nothing but the metrics: what the peer's program does.
func writeViTRecipe(dir string, s setting) error {
	return os.WriteFile(filepath.Join(dir, "recipe.toml"), fmt.Appendf(nil, `[run]
name = "bench"
output_dir = %q
steps = %d

[model]
name = "vit"
classes = 1000

[vit]
size = %q

[data]
kind = "synthetic"
image_size = 224
augment = "none"

[train]
ranks = %d
threads_per_rank = %d
batch_per_rank = %d
dtype = %q

[optim]
name = "adamw"
lr = 3e-4

[schedule]
kind = "constant"

[eval]
enabled = false

[checkpoint]
enabled = false
`, dir, s.Warm+s.Steps, s.Model, s.World, s.Threads, s.Batch, s.DType), 0o644)
}
