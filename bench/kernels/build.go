// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/gotrain/gotrain/bench/shapes"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/npu"
)

const resNet50 = "resnet50"

// pictureSide is the height and the width of pictures.
const pictureSide = 224

// build makes the graph of a step, and says below what limit the integers of an input are; 0 where it is real numbers.
func build(o options) (*graph.Builder, map[string]int, error) {
	b := graph.New()
	if o.shape == resNet50 {
		x, labels := b.Input("image", npu.F32, o.batch, 3, pictureSide, pictureSide), b.Input("label", npu.I32, o.batch)
		loss, _ := b.CrossEntropy(resnet.Build(b, x, resnet.Config{Depth: 50}), labels)
		b.Loss(loss)
		return b, map[string]int{"image": 0, "label": 1000}, nil
	}
	c, err := shapes.Llama(o.shape, o.seq)
	if err != nil {
		return nil, nil, err
	}
	batch := llama.Batch{Tokens: b.Input("tokens", npu.I32, o.batch, o.seq)}
	loss, _ := c.Loss(b, batch, b.Input("targets", npu.I32, o.batch, o.seq), llama.Weights{})
	b.Loss(loss)
	return b, map[string]int{"tokens": c.Vocab, "targets": c.Vocab}, nil
}

// items is how many tokens, or pictures, a step has.
func (o options) items() int {
	if o.shape == resNet50 {
		return o.batch
	}
	return o.batch * o.seq
}

// unit is what rates count.
func (o options) unit() string {
	if o.shape == resNet50 {
		return "images/s"
	}
	return "tok/s"
}
