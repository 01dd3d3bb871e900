// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/bench/shapes"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

func TestParseGenerate(t *testing.T) {
	got, err := parseGenerate([]byte(`{"text": "x", "tokens": [1, 2, 3, 4], "tokens_per_second": 100}`+"\n{}\n"), 4)
	if err != nil || got != 75 { // three of four tokens were written in the time that is told
		t.Errorf("parseGenerate = %v, %v; want 75", got, err)
	}
	for _, bad := range []string{"", "hello", `{"tokens": [1], "tokens_per_second": 100}`, `{"tokens": [1, 2, 3, 4]}`} {
		if _, err := parseGenerate([]byte(bad), 4); err == nil {
			t.Errorf("parseGenerate of %q: no error", bad)
		}
	}
}

func TestWeightBytes(t *testing.T) {
	tied, _ := shapes.Llama("stories15M", 256)
	own, _ := shapes.Llama("d512", 256)
	if a, b := weightBytes(tied, "f32"), weightBytes(own, "bf16"); a != 4*15191712 || b != 2*(58073600-32000*512) {
		t.Errorf("weightBytes = %d, %d", a, b)
	}
}

// TestRandomModel: what the harness writes is a model and its tokenizer to those who read such files, without a token at which texts end.
func TestRandomModel(t *testing.T) {
	c, err := shapes.Llama("d512", 64)
	if err != nil {
		t.Fatal(err)
	}
	c.Dim, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.Vocab = 16, 24, 2, 4, 2, 300
	dir := t.TempDir()
	if err := writeModel(dir, c); err != nil {
		t.Fatal(err)
	}
	m, err := llamafile.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := m.Config(); got.Params() != c.Params() || got.Tied || got.Context != 64 || got.BOS != -1 || got.EOS != -1 {
		t.Errorf("the model is %+v", got)
	}
	k, err := tokenizer.Open(filepath.Join(dir, tokenizerName))
	if err != nil {
		t.Fatal(err)
	}
	if ids := k.Encode(nil, "a"); k.Vocab() != 300 || len(ids) == 0 || ids[0] >= 300 {
		t.Errorf("a vocabulary of %d, tokens %v", k.Vocab(), ids)
	}
}

func TestPrintGenerate(t *testing.T) {
	var out bytes.Buffer
	s := setting{World: 1, Threads: 2, Batch: 4, DType: "bf16", Model: "d512"}
	printGenerate(&out, []written{
		{s: s, bytes: 100e6, read: []float64{10, 20, 30}, tokens: []float64{500, 600, 700}, peer: []float64{300}, others: []float64{0, 1, 90}},
		{s: setting{Model: "stories15M", DType: "f32", Threads: 1, Batch: 1}, bytes: 60e6},
	}, 5)
	for _, want := range []string{"800.00", "600.00 ", "500.00…700.00", "75%", "2.00x", "stories15M f32"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
}

// A bound that is exceeded is an error, which names the setting; a little more is an error of measurement.
func TestExceeded(t *testing.T) {
	w := written{s: setting{Threads: 1, Batch: 1, DType: "f32", Model: "d512"}, bytes: 100e6, read: []float64{10, 10, 20}, tokens: []float64{104, 90, 300}}
	if err := exceeded([]written{w, {}}); err != nil {
		t.Errorf("104 %% in the median: %v", err)
	}
	w.tokens = []float64{130, 90, 300}
	if err := exceeded([]written{{}, w}); err == nil || !strings.Contains(err.Error(), "d512 f32 1 threads, 1 texts: 130 % of the bound") {
		t.Errorf("130 %%: %v", err)
	}
}
