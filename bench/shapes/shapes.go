// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

// Package shapes has the Llamas that the benchmarks measure, the same ones as bench/peer/llama_net.py.
package shapes

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/graph/models/llama"
)

// Names lists them.
func Names() []string { return []string{"stories15M", "d512"} }

// Llama is the configuration of a shape, for sequences of up to seq tokens.
//
//   - stories15M: the published story teller, 15 million parameters, of which the tied embedding is more than half.
//   - d512: dim 512, 8 layers, an untied last layer: 58 million parameters.
func Llama(name string, seq int) (llama.Config, error) {
	if seq < 1 {
		return llama.Config{}, fmt.Errorf("sequences of %d tokens", seq)
	}
	size := map[string]string{"stories15M": "stories15m", "d512": "stories42m"}[name]
	if size == "" {
		return llama.Config{}, fmt.Errorf("no shape is called %q; there are %s", name, strings.Join(Names(), " and "))
	}
	c, err := llama.Named(size)
	if name == "d512" {
		c.Tied = false
	}
	c.Context = seq
	return c, err
}
