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
	"slices"
	"strconv"
	"strings"
	"time"
)

// gotrainCommand trains ResNet-50 on synthetic images, in memory, with nothing written but the metrics. {bin} is the program that the harness
// built, {dir} a folder of the run's own.
var gotrainCommand = strings.Join([]string{
	"{bin} run resnet50",
	"--set run.output_dir={dir}", "--set run.epochs=0", "--set run.steps={steps}",
	"--set model.classes=1000",
	"--set data.kind=synthetic", "--set data.root=", "--set data.augment=none",
	"--set train.ranks={world}", "--set train.threads_per_rank={threads}", "--set train.batch_per_rank={batch}", "--set train.dtype={dtype}",
	"--set schedule.kind=constant", "--set schedule.warmup_epochs=0",
	"--set eval.enabled=false", "--set eval.every_epochs=0", "--set checkpoint.enabled=false", "--set checkpoint.every_epochs=0",
}, " ")

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
		dir, err := os.MkdirTemp(h.scratch, "run-")
		if err != nil {
			return result{}, err
		}
		args := fill(template, bin, dir, s)
		r, err := execute(ctx, nil, args[0], args[1:]...)
		if err != nil {
			return result{}, err
		}
		metrics, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
		if errors.Is(err, os.ErrNotExist) {
			metrics, err = r.stdout, nil // a command of the user's own may print them
		}
		if err != nil {
			return result{}, err
		}
		res, err := parseGotrain(metrics, s, r.began)
		res.rssMB, res.disturbed = r.rssMB, r.disturbed
		return res, err
	}
	return c
}

// fill splits a command at spaces and puts the values in.
func fill(template, bin, dir string, s setting) []string {
	r := strings.NewReplacer("{bin}", bin, "{dir}", dir, "{world}", strconv.Itoa(s.World), "{threads}", strconv.Itoa(s.Threads),
		"{batch}", strconv.Itoa(s.Batch), "{dtype}", s.DType, "{steps}", strconv.Itoa(s.Warm+s.Steps))
	args := strings.Fields(template)
	for i := range args {
		args[i] = r.Replace(args[i])
	}
	return args
}

// parseGotrain reads the events of a run, a JSON object a line: the version from its start, duration and moment of each step.
func parseGotrain(jsonl []byte, s setting, began time.Time) (result, error) {
	var res result
	var times []float64
	seen := 0
	for line := range strings.Lines(string(jsonl)) {
		var e struct {
			Event   string
			Time    time.Time
			Took    *float64 `json:"step_time"`
			Version string
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		if e.Version != "" {
			res.version = e.Version
		}
		if e.Event != "step" || e.Took == nil {
			continue
		}
		if seen++; seen == 1 && !e.Time.IsZero() {
			res.firstS = e.Time.Sub(began).Seconds()
		}
		if seen > s.Warm {
			times = append(times, *e.Took)
		}
	}
	if len(times) == 0 {
		return res, fmt.Errorf("its metrics have %d steps, and %d are for warming up", seen, s.Warm)
	}
	n := float64(s.Batch * s.World)
	res.stepMS = median(times) * 1e3
	res.imgS, res.best = n/median(times), n/slices.Min(times)
	return res, nil
}
