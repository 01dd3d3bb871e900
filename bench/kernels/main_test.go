// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// One step of the real program, a sequence of a few tokens: the line is what bench/compare reads, and AdamW and products are among the kinds.
func TestRun(t *testing.T) {
	dev, err := npu.Open("cpu", npu.Options{Threads: 1})
	if err != nil {
		t.Skipf("the cpu device is not there: %v", err)
	}
	dev.Close()
	var out bytes.Buffer
	if err := run(context.Background(), []string{"-batch", "1", "-seq", "8", "-steps", "1", "-by-kind"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`[\d.]+ tok/s \(best [\d.]+\), step [\d.]+ ms\n`, `(?m)^  adam`, `matmul dW`, `matmul forward`} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
	for _, bad := range [][]string{{"-shape", "x"}, {"-dtype", "f7"}, {"-batch", "0"}, {"-seq", "0"}, {"-conv-algorithm", "fft"}} {
		if err := run(context.Background(), bad, &out); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
