// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/bench/shapes"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train/data/text"
)

// TestCommandFitsTheRecipes keeps the harness's command in step with the schema: every key exists, and what it asks for is what runs.
func TestCommandFitsTheRecipes(t *testing.T) {
	args := fill(gotrainCommand, "gotrain", "/tmp/x", setting{World: 2, Threads: 1, Batch: 16, Warm: 4, Steps: 8, DType: "bf16"})
	var sets []string
	for i, a := range args {
		if a == "--set" {
			sets = append(sets, args[i+1])
		}
	}
	r, err := recipes.Open(args[2], sets...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Run.Steps != 12 || r.Run.OutputDir != "/tmp/x" || r.Train.Ranks != 2 || r.Train.Threads != 1 || r.GlobalBatch(2) != 32 || r.Train.DType != "bf16" ||
		r.Data.Kind != "synthetic" || r.Data.ImageSize != 224 || r.Model.Depth != 50 || r.Model.Classes != 1000 ||
		r.Eval.Enabled ||
		r.Checkpoint.Enabled ||
		!r.Log.JSONL {
		t.Errorf("the command resolves to %+v", r)
	}
}

// TestLlamaRecipe: the recipe that the harness writes is valid and means the model and the step that the peers have.
func TestLlamaRecipe(t *testing.T) {
	for _, name := range shapes.Names() {
		dir := t.TempDir()
		s := setting{World: 2, Threads: 1, Batch: 8, Warm: 4, Steps: 8, DType: "bf16", Model: name, Seq: 512}
		if err := writeRecipe(dir, s); err != nil {
			t.Fatal(err)
		}
		r, err := recipes.Load(filepath.Join(dir, "recipe.toml"))
		if err != nil {
			raw, _ := os.ReadFile(filepath.Join(dir, "recipe.toml"))
			t.Fatalf("%v\n%s", err, raw)
		}
		c, err := assemble.Llama(r, text.Info{})
		if want, _ := shapes.Llama(name, 512); err != nil || c.Params() != want.Params() || c.Context != 512 || c.Tied != want.Tied {
			t.Errorf("%s: model %+v, %v; want %+v", name, c, err, want)
		}
		if r.Run.Steps != 12 || r.Run.OutputDir != dir || r.Train.Ranks != 2 || r.Train.Threads != 1 || r.Train.Batch != 8 ||
			r.Train.DType != "bf16" || r.Train.ClipNorm != 0 ||
			r.Data.Kind != "synthetic" || r.Text.Sequence != 512 || r.Optim.Name != "adamw" || r.Optim.LR != 3e-4 || r.Schedule.Kind != "constant" ||
			r.Eval.Enabled ||
			r.Checkpoint.Enabled ||
			!r.Log.JSONL {
			t.Errorf("%s: the recipe resolves to %+v", name, r)
		}
	}
}

// TestViTRecipe: the recipe that the harness writes is valid and means what the peer trains.
func TestViTRecipe(t *testing.T) {
	o := options{sizes: "deit-ti,vit-b", dtypes: "bf16", ranks: "2x1", warm: 4, steps: 8, rounds: 1, tokens: 2}
	settings, err := o.vitSettings()
	if err != nil || len(settings) != 2 || settings[1].label() != "vit-b bf16 2x1 b16" {
		t.Fatalf("settings %+v, %v", settings, err)
	}
	for _, s := range settings {
		dir := t.TempDir()
		if err := writeViTRecipe(dir, s); err != nil {
			t.Fatal(err)
		}
		r, err := recipes.Load(filepath.Join(dir, "recipe.toml"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Run.Steps != 12 || r.Run.OutputDir != dir || r.GlobalBatch(2) != 32 || r.Train.DType != "bf16" || r.Train.ClipNorm != 0 || r.Model.Name != "vit" ||
			r.Model.Classes != 1000 || r.Data.Kind != "synthetic" || r.Data.ImageSize != 224 || r.Optim.Name != "adamw" || r.Eval.Enabled || r.Checkpoint.Enabled ||
			!r.Log.JSONL {
			t.Errorf("%s: the recipe resolves to %+v", s.Model, r)
		}
	}
	o.sizes = "deit-l"
	if _, err := o.vitSettings(); err == nil {
		t.Error("deit-l was never published")
	}
}
