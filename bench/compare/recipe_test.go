// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/gotrain/gotrain/recipes"
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
		r.Data.Kind != "synthetic" || r.Data.ImageSize != 224 || r.Model.Depth != 50 || r.Model.Classes != 1000 || r.Eval.Enabled || r.Checkpoint.Enabled || !r.Log.JSONL {
		t.Errorf("the command resolves to %+v", r)
	}
}
