// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTrained(t *testing.T) {
	row := trained{Recipe: "llama-tiny", Codec: "int8", Seed: 2, Steps: 20, Ranks: 2}
	err := row.parse([]byte(`{"event":"step","step":20,"loss":3.5,"metrics":[{"name":"compress_ratio","value":3.9},{"name":"compress_error","value":0.012}]}
{"event":"eval","step":10,"loss":4.5}
{"event":"eval","step":20,"loss":3.25,"metrics":[{"name":"perplexity","value":25.8},{"name":"bad","value":null}]}
`))
	if err != nil || row.Loss != 3.25 || row.More["compress_ratio"] != 3.9 || row.More["perplexity"] != 25.8 {
		t.Fatalf("%+v, %v", row, err)
	}
	if err := (&trained{Steps: 30}).parse([]byte(`{"event":"eval","step":20,"loss":3.25}`)); err == nil {
		t.Error("a run that did not end has a loss")
	}
	path := filepath.Join(t.TempDir(), "codec.json")
	if rows, err := readTrained(path); err != nil || rows != nil {
		t.Fatal(rows, err)
	}
	rows := []trained{{Codec: "none", Loss: 3.24, Seed: 2},
		{Codec: "none", Loss: 3.26, Seed: 1}, {Codec: "none, learning rate + 0.01 %", Loss: 3.28, Seed: 2}, row,
		{Codec: "f16", Loss: 3.25, Seed: 2}, {Codec: "f16", Loss: 3.29, Seed: 1}}
	if err := writeTrained(path, rows); err != nil {
		t.Fatal(err)
	}
	if rows, err = readTrained(path); err != nil || !slices.ContainsFunc(rows, row.same) {
		t.Fatal(rows, err)
	}
	var out bytes.Buffer
	printTrained(&out, rows)
	for _, want := range []string{"3.2400 3.2600", "mean 3.2500", "-0.0100", "+0.0100 ± 0.0200", "3.90 times smaller", "1.20 % of", "deviation of 0.0283"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
