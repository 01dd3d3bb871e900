// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// setting is one way to train.
type setting struct {
	World, Threads, Batch, Warm, Steps int
	DType                              string
	Model                              string // shape of a Llama, or size of a vision transformer; empty for ResNet-50
	Seq                                int    // tokens of a sequence; 0 for images
	Memory                             int    // train.memory_limit_mb of gotrain; 0: none
}

func (s setting) String() string { return fmt.Sprintf("%s %dx%d", s.DType, s.World, s.Threads) }

// label is the setting in full.
func (s setting) label() string {
	if s.Model == "" {
		return fmt.Sprintf("%s b%d", s, s.Batch)
	}
	if s.Seq == 0 {
		return fmt.Sprintf("%s %s b%d", s.Model, s, s.Batch)
	}
	return fmt.Sprintf("%s %s b%d s%d", s.Model, s, s.Batch, s.Seq)
}

// items is how many images or tokens a step has on all ranks.
func (s setting) items() int { return s.World * s.Batch * max(s.Seq, 1) }

// settings crosses the flags with models and lengths of sequences, where there are such. batches are what an empty -batch means.
func (o options) settings(models []string, batches []int, seqs []int) ([]setting, error) {
	if o.warm < 1 || o.steps < 1 || o.rounds < 1 || o.tokens < 2 {
		return nil, errors.New("-warm, -steps and -rounds must be at least 1, -tokens at least 2")
	}
	if o.batch != "" {
		var err error
		if batches, err = numbers("-batch", o.batch); err != nil {
			return nil, err
		}
	}
	if len(models) == 0 {
		models, seqs = []string{""}, []int{0}
	}
	var out []setting
	for _, s := range cross(models, seqs, batches) {
		for d := range strings.SplitSeq(o.dtypes, ",") {
			if d != "f32" && d != "bf16" {
				return nil, fmt.Errorf("-dtype %q: only f32 and bf16 are compared", d)
			}
			for r := range strings.SplitSeq(o.ranks, ",") {
				s.Warm, s.Steps, s.DType, s.Memory = o.warm, o.steps, d, o.memory
				if _, err := fmt.Sscanf(r+"\n", "%dx%d\n", &s.World, &s.Threads); err != nil || s.World < 1 || s.Threads < 1 {
					return nil, fmt.Errorf("-ranks %q: write RANKSxTHREADS, such as 2x1", r)
				}
				out = append(out, s)
			}
		}
	}
	return out, nil
}

func cross(models []string, seqs, batches []int) (out []setting) {
	for _, m := range models {
		for _, q := range seqs {
			for _, b := range batches {
				out = append(out, setting{Model: m, Seq: q, Batch: b})
			}
		}
	}
	return out
}

// numbers reads whole numbers with commas between them.
func numbers(flag, list string) (out []int, err error) {
	for f := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(f)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: write whole numbers from 1 up, with commas between them", flag, list)
		}
		out = append(out, n)
	}
	return out, nil
}
