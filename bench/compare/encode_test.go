// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// Rows of both programs meet by name and size, the best round counts, and the lowest ratio is told.
func TestSpeeds(t *testing.T) {
	ours := parseSpeeds(`goos: linux
BenchmarkCodec/int8_encode_+_error_feedback_B=256/KiB=128         	  1000	     30000 ns/op	20000.00 MB/s
BenchmarkCodec/int8_encode_+_error_feedback_B=256/KiB=65536-2     	     2	  30000000 ns/op	12000.50 MB/s
BenchmarkCodec/f16_encode/KiB=128         	  1000	     30000 ns/op	50000.00 MB/s
PASS
`)
	mark := parseSpeeds(`128 KiB of f32
  int8 encode + error feedback B=256  16.00 GB/s of f32
  f32 copy, for comparison            80.00 GB/s of f32
65536 KiB of f32
  int8 encode + error feedback B=256  15.00 GB/s of f32
check: relative error 0.5%
`)
	mark.keep(parseSpeeds("128 KiB of f32\n  int8 encode + error feedback B=256  15.00 GB/s of f32\n"))
	var out bytes.Buffer
	if err := printSpeeds(&out, 2, ours, ours, mark); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range []string{
		"GB/s of f32 KiB gotrain AVX2 only mark gotrain / mark AVX2 only / mark",
		"f16 encode 128 50.0 50.0 - - -",
		"int8 encode + error feedback B=256 128 20.0 20.0 16.0 1.25 1.25",
		"int8 encode + error feedback B=256 65536 12.0 12.0 15.0 0.80 0.80",
		"best of 2 rounds in turn; above 1 is faster than the mark; the lowest ratio is 0.80",
	} {
		if i >= len(rows) || rows[i] != want {
			t.Errorf("line %d of\n%s\nwant %s", i, out.String(), want)
		}
	}
	if printSpeeds(&out, 1, parseSpeeds("nothing"), nil, nil) == nil {
		t.Error("an empty table")
	}
}
