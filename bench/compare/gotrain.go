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

// build makes a command of the project and returns where it is, or why there is none.
func (h *harness) build(name, pkg string) (path, missing string) {
	path = filepath.Join(h.scratch, name)
	cmd := exec.CommandContext(h.ctx, "go", "build", "-o", path, pkg)
	cmd.Dir = filepath.Join(h.o.bench, "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Sprintf("it cannot be built: %v: %s", err, tail(string(out), 3))
	}
	return path, ""
}

// gotrain is the program of this checkout with the given command line, or what -gotrain says. prepare puts into {dir} what the command needs.
func (h *harness) gotrain(template string, prepare func(dir string, s setting) error) contestant {
	c := contestant{name: "gotrain"}
	bin := ""
	if h.o.gotrain != "" {
		template = h.o.gotrain
	} else if bin, c.missing = h.build("gotrain", "./cmd/gotrain"); c.missing != "" {
		return c
	}
	c.run = func(ctx context.Context, s setting) (result, error) {
		dir, err := os.MkdirTemp(h.scratch, "run-")
		if err != nil {
			return result{}, err
		}
		defer os.RemoveAll(dir)
		if prepare != nil {
			if err := prepare(dir, s); err != nil {
				return result{}, err
			}
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
		res.rssMB, res.pssMB, res.disturbed = r.rssMB, r.pssMB, r.disturbed
		return res, err
	}
	return c
}

// fill splits a command at spaces and puts the values in.
func fill(template, bin, dir string, s setting) []string {
	r := strings.NewReplacer("{bin}", bin, "{dir}", dir, "{world}", strconv.Itoa(s.World), "{threads}", strconv.Itoa(s.Threads),
		"{batch}", strconv.Itoa(s.Batch), "{dtype}", s.DType, "{steps}", strconv.Itoa(s.Warm+s.Steps), "{shape}", s.Model, "{seq}", strconv.Itoa(s.Seq))
	args := strings.Fields(template)
	for i := range args {
		args[i] = r.Replace(args[i])
	}
	return args
}

// parseGotrain reads the events of a run, a JSON object a line: the version from its start, duration of each step, and how much of it the device was at work.
func parseGotrain(jsonl []byte, s setting, began time.Time) (result, error) {
	var res result
	var times, utils []float64
	seen := 0
	for line := range strings.Lines(string(jsonl)) {
		var e struct {
			Event   string
			Time    time.Time
			Took    *float64 `json:"step_time"`
			Util    float64  `json:"npu_util"`
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
			times, utils = append(times, *e.Took), append(utils, e.Util)
		}
	}
	if len(times) == 0 {
		return res, fmt.Errorf("its metrics have %d steps, and %d are for warming up", seen, s.Warm)
	}
	n := float64(s.items())
	res.stepMS, res.util = median(times)*1e3, median(utils)
	res.rate, res.best = n/median(times), n/slices.Min(times)
	return res, nil
}
