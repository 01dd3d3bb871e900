// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMosaics(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "all")
	if err := mosaics("../../recipes/data/flowers/train", dir, 2); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000.jpg", "001.jpg"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if cfg, err := jpeg.DecodeConfig(bytes.NewReader(raw)); err != nil || cfg.Width != 500 || cfg.Height != 375 || len(raw) < 30000 {
			t.Errorf("%s: %d bytes, %+v, %v", name, len(raw), cfg, err)
		}
	}
	if err := mosaics(t.TempDir(), dir, 1); err == nil {
		t.Error("makes pictures of nothing")
	}
}

// Medians, ratios, and who could not run.
func TestLoadersTable(t *testing.T) {
	var out bytes.Buffer
	h := &harness{ctx: context.Background(), o: options{rounds: 1}, out: &out, progress: &bytes.Buffer{}}
	say := func(line string) func(string) []string {
		return func(string) []string { return []string{"echo", line} }
	}
	err := h.loadAll(loading{title: "things", unit: "things/s", field: []loader{
		{name: "gotrain", argv: say(`{"version":"1","items_per_second":300}`)}, {name: "other", argv: say(`note {"version":"peer 2","rate":100}`)},
		{name: "broken", argv: func(string) []string { return []string{"false"} }},
	}})
	if err != nil {
		t.Skip(err) // no taskset
	}
	for _, want := range []string{"3.00 ×", "peer 2", "broken", "not measured"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}
