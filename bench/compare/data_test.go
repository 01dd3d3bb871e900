// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// Medians, ratios, and who could not run.
func TestLoadersTable(t *testing.T) {
	var out bytes.Buffer
	h := &harness{ctx: context.Background(), o: options{rounds: 1, timeout: 2 * time.Second}, out: &out, progress: &bytes.Buffer{}}
	say := func(line string) func(string) []string {
		return func(string) []string { return []string{"echo", line} }
	}
	err := h.loadAll(loading{title: "things", unit: "things/s", field: []loader{
		{name: "gotrain", argv: say(`{"version":"1","items_per_second":300}`)}, {name: "other", argv: say(`note {"version":"peer 2","rate":100}`)},
		{name: "broken", argv: func(string) []string { return []string{"false"} }},
		{name: "endless", argv: func(string) []string { return []string{"sleep", "60"} }},
	}})
	if err != nil {
		t.Skip(err) // no taskset
	}
	for _, want := range []string{"3.00 ×", "peer 2", "broken", "not measured", "it took more than 2s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}
