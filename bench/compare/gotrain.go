// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// gotrainCommand is how ResNet-50 is trained on synthetic images with the command line of this checkout. {bin} is the program that the harness
// built; the metrics of the run go to {jsonl}.
const gotrainCommand = `{bin} run resnet50 --ranks {world} --set device.threads={threads} --set train.batch={batch} --set train.dtype={dtype} --set train.steps={steps}` +
	` --set data.kind=synthetic --set log.jsonl={jsonl}`

// gotrain is the program of this checkout, or what -gotrain says.
func (h *harness) gotrain() contestant {
	c := contestant{name: "gotrain"}
	template := h.o.gotrain
	bin := filepath.Join(h.scratch, "gotrain")
	if template == "" {
		template = gotrainCommand
		cmd := exec.CommandContext(h.ctx, "go", "build", "-o", bin, "./cmd/gotrain")
		cmd.Dir = filepath.Join(h.o.bench, "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			c.missing = fmt.Sprintf("it cannot be built: %v: %s", err, tail(string(out), 3))
			return c
		}
	}
	c.run = func(ctx context.Context, s setting) (result, error) {
		jsonl := filepath.Join(h.scratch, "metrics.jsonl")
		os.Remove(jsonl)
		args := fill(template, bin, jsonl, s)
		r, err := execute(ctx, nil, args[0], args[1:]...)
		if err != nil {
			return result{}, err
		}
		metrics, err := os.ReadFile(jsonl)
		if errors.Is(err, os.ErrNotExist) {
			metrics, err = r.stdout, nil // a command of the user's own may print them
		}
		if err != nil {
			return result{}, err
		}
		res, err := parseGotrain(metrics, s)
		res.rssMB, res.disturbed = r.rssMB, r.disturbed
		return res, err
	}
	return c
}

// fill splits a command at spaces and puts the values in.
func fill(template, bin, jsonl string, s setting) []string {
	r := strings.NewReplacer("{bin}", bin, "{jsonl}", jsonl, "{world}", strconv.Itoa(s.World), "{threads}", strconv.Itoa(s.Threads),
		"{batch}", strconv.Itoa(s.Batch), "{dtype}", s.DType, "{steps}", strconv.Itoa(s.Warm+s.Steps))
	args := strings.Fields(template)
	for i := range args {
		args[i] = r.Replace(args[i])
	}
	return args
}

// parseGotrain reads the events of a run: a line of JSON each, of which those of a step carry the time of the step and the time since the start.
func parseGotrain(jsonl []byte, s setting) (result, error) {
	var res result
	var times []float64
	seen := 0
	for line := range strings.Lines(string(jsonl)) {
		var e struct {
			Event   string
			Step    int
			StepS   float64 `json:"step_s"`
			SinceS  float64 `json:"since_start_s"`
			Version string
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		if e.Version != "" {
			res.version = e.Version
		}
		if e.Event != "step" || e.StepS <= 0 {
			continue
		}
		if seen++; seen == 1 {
			res.firstS = e.SinceS
		}
		if seen > s.Warm {
			times = append(times, e.StepS)
		}
	}
	if len(times) == 0 {
		return res, fmt.Errorf("its metrics have %d steps, %d of them are for warming up", seen, s.Warm)
	}
	n := float64(s.Batch * s.World)
	best := times[0]
	for _, t := range times {
		best = min(best, t)
	}
	res.stepMS = median(times) * 1e3
	res.imgS, res.best = n/median(times), n/best
	return res, nil
}
