// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// result is one run of one contestant. Items are images or tokens, those of all ranks; RSS is the largest rank's peak.
type result struct {
	rate, best    float64 // items a second: of the median step, of the fastest
	stepMS        float64
	rssMB, firstS float64 // 0: not known
	util          float64 // part of the step in which the device was at work; 0: not known
	disturbed     float64
	version       string
}

// contestant trains for a moment in a given setting.
type contestant struct {
	name    string
	missing string               // why it cannot run, and what to do; "" = it can
	fits    func(s setting) bool // nil: it can do every setting
	run     func(ctx context.Context, s setting) (result, error)
}

type harness struct {
	ctx           context.Context
	o             options
	out, progress io.Writer
	scratch       string
}

// race is a comparison: what is trained, counted in what, by whom.
type race struct {
	title, unit string
	settings    []setting
	field       []contestant
}

// steps measures training steps of ResNet-50.
func (h *harness) steps() error {
	settings, err := h.o.settings(nil, []int{16}, nil)
	if err != nil {
		return err
	}
	return h.race(race{"ResNet-50 224x224", "img/s", settings, []contestant{h.gotrain(gotrainCommand, nil), h.pytorch("resnet_torch.py", nil), h.mark()}})
}

// race measures all settings and prints a table.
func (h *harness) race(r race) error {
	var field []contestant
	for _, c := range r.field {
		if c.missing != "" {
			fmt.Fprintf(h.out, "%s does not take part: %s\n", c.name, c.missing)
			continue
		}
		field = append(field, c)
	}
	t := newTable(r.title, r.unit, field)
	for _, s := range r.settings {
		for round := range h.o.rounds {
			for _, c := range field {
				if c.fits != nil && !c.fits(s) {
					continue
				}
				got, err := h.one(c, s)
				if h.ctx.Err() != nil {
					return h.ctx.Err()
				}
				if err != nil {
					fmt.Fprintf(h.out, "%s, %s, round %d failed: %v\n", c.name, s.label(), round+1, err)
					continue
				}
				fmt.Fprintf(
					h.progress,
					"%s, round %d, %s: %s %s, others used %.0f %% of the machine\n",
					s.label(),
					round+1,
					c.name,
					rate(got.rate),
					r.unit,
					got.disturbed,
				)
				t.add(s, c.name, got)
			}
		}
	}
	t.print(h.out, h.o.disturbed)
	return nil
}

func (h *harness) one(c contestant, s setting) (result, error) {
	ctx, cancel := context.WithTimeout(h.ctx, h.o.timeout)
	defer cancel()
	return c.run(ctx, s)
}

// pytorch is a program of bench/peer, which sets its own environment for speed. more are the arguments that it takes beside the usual ones.
func (h *harness) pytorch(script string, more func(s setting) []string) contestant {
	c := contestant{name: "pytorch", missing: torchMissing()}
	c.run = func(ctx context.Context, s setting) (result, error) {
		args := []string{h.peer(script), "--world", strconv.Itoa(s.World), "--threads", strconv.Itoa(s.Threads),
			"--batch", strconv.Itoa(s.Batch), "--dtype", s.DType, "--warm", strconv.Itoa(s.Warm), "--steps", strconv.Itoa(s.Steps)}
		if more != nil {
			args = append(args, more(s)...)
		}
		r, err := execute(ctx, nil, python(), args...)
		if err != nil {
			return result{}, err
		}
		return parseTorch(r)
	}
	return c
}

// torchMissing says why there is no PyTorch; "" if there is.
func torchMissing() string {
	out, err := exec.Command(python(), "-c", "import torch").CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf(
		"%s cannot import torch (%s)\nhint: pip install torch, or apt-get install python3-torch; name the interpreter in BENCH_PYTHON",
		python(),
		tail(string(out), 1),
	)
}

func python() string {
	if p := os.Getenv("BENCH_PYTHON"); p != "" {
		return p
	}
	return "python3"
}

func parseTorch(r ran) (result, error) {
	var j struct {
		Version string
		ImgS    float64 `json:"img_s"`
		ImgBest float64 `json:"img_s_best"`
		TokS    float64 `json:"tok_s"`
		TokBest float64 `json:"tok_s_best"`
		StepMS  float64 `json:"step_ms"`
		RSS     float64 `json:"rss_mb"`
		First   float64 `json:"first_step_s"`
	}
	if err := json.Unmarshal([]byte(tail(string(r.stdout), 1)), &j); err != nil || max(j.ImgS, j.TokS) <= 0 {
		return result{}, fmt.Errorf("its last line is not the expected JSON: %q", tail(string(r.stdout), 1))
	}
	return result{
		rate:      max(j.ImgS, j.TokS),
		best:      max(j.ImgBest, j.TokBest),
		stepMS:    j.StepMS,
		rssMB:     j.RSS,
		firstS:    j.First,
		disturbed: r.disturbed,
		version:   j.Version,
	}, nil
}
