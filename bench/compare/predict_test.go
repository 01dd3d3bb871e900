// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

// Both programs' outputs are read, with messages between their lines.
func TestParsePredictions(t *testing.T) {
	got, err := parsePredictions([]byte(`{"path":"a.jpg","classes":[{"label":3,"class":"x","probability":0.5}]}
1 picture, 0.3 a second
{"path":"b.jpg","classes":[{"label":1,"class":"y","probability":0.9}]}
2 pictures in 4.1s on cpu (f32), 31.5 a second
`))
	if err != nil || got.Rate != 31.5 || !slices.Equal(got.Labels, []int{3, 1}) {
		t.Error(got, err)
	}
	got, err = parsePredictions([]byte("a warning\n{\"version\": \"2.15\", \"rate\": 12.5, \"seconds\": 1, \"labels\": [3, 2]}\n"))
	if err != nil || got.Rate != 12.5 || got.Version != "2.15" || agreement(got.Labels, []int{3, 1}) != 0.5 {
		t.Error(got, err)
	}
	if _, err := parsePredictions([]byte("gotrain: no checkpoint\n")); err == nil {
		t.Error("reads a rate where there is none")
	}
}
