// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package shapes

import "testing"

// The counts are what the peer's programs print for the same shapes.
func TestParameters(t *testing.T) {
	for name, want := range map[string]int64{"stories15M": 15191712, "d512": 58073600} {
		c, err := Llama(name, 256)
		if err != nil || c.Params() != want || c.Context != 256 || c.Check() != nil {
			t.Errorf("%s: %d parameters, context %d, %v; want %d", name, c.Params(), c.Context, err, want)
		}
	}
	if _, err := Llama("stories15m", 256); err == nil {
		t.Error("a name that does not exist: no error")
	}
	if _, err := Llama("d512", 0); err == nil {
		t.Error("no tokens: no error")
	}
}
