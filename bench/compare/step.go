// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// result is one run of one contestant. Images are those of all ranks; RSS is the largest rank's peak.
type result struct {
	imgS, best, stepMS, rssMB, firstS float64
	disturbed                         float64
	version                           string
}

// contestant trains ResNet-50 for a moment in a given setting.
type contestant struct {
	name    string
	missing string // why it cannot run, and what to do; "" = it can
	run     func(ctx context.Context, s setting) (result, error)
}

type harness struct {
	ctx           context.Context
	o             options
	out, progress io.Writer
	scratch       string
}

// steps measures all settings and prints a table.
func (h *harness) steps(settings []setting) error {
	all := []contestant{h.gotrain(), h.pytorch(), h.mark()}
	var field []contestant
	for _, c := range all {
		if c.missing != "" {
			fmt.Fprintf(h.out, "%s does not take part: %s\n", c.name, c.missing)
			continue
		}
		field = append(field, c)
	}
	t := newTable(field)
	for _, s := range settings {
		for round := range h.o.rounds {
			for _, c := range field {
				r, err := h.one(c, s)
				if h.ctx.Err() != nil {
					return h.ctx.Err()
				}
				if err != nil {
					fmt.Fprintf(h.out, "%s, %s, round %d failed: %v\n", c.name, s, round+1, err)
					continue
				}
				fmt.Fprintf(h.progress, "%s, round %d, %s: %.2f img/s, others used %.0f %% of the machine\n", s, round+1, c.name, r.imgS, r.disturbed)
				t.add(s, c.name, r)
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

// pytorch is peer/resnet_torch.py, which sets its own environment for speed.
func (h *harness) pytorch() contestant {
	c := contestant{name: "pytorch"}
	python := python()
	if out, err := exec.Command(python, "-c", "import torch").CombinedOutput(); err != nil {
		c.missing = fmt.Sprintf("%s cannot import torch (%s)\nhint: pip install torch, or apt-get install python3-torch; name the interpreter in BENCH_PYTHON", python, tail(string(out), 1))
		return c
	}
	c.run = func(ctx context.Context, s setting) (result, error) {
		r, err := execute(ctx, nil, python, h.peer("resnet_torch.py"), "--world", strconv.Itoa(s.World), "--threads", strconv.Itoa(s.Threads),
			"--batch", strconv.Itoa(s.Batch), "--dtype", s.DType, "--warm", strconv.Itoa(s.Warm), "--steps", strconv.Itoa(s.Steps))
		if err != nil {
			return result{}, err
		}
		return parseTorch(r)
	}
	return c
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
		Best    float64 `json:"img_s_best"`
		StepMS  float64 `json:"step_ms"`
		RSS     float64 `json:"rss_mb"`
		First   float64 `json:"first_step_s"`
	}
	if err := json.Unmarshal([]byte(tail(string(r.stdout), 1)), &j); err != nil || j.ImgS <= 0 {
		return result{}, fmt.Errorf("its last line is not the expected JSON: %q", tail(string(r.stdout), 1))
	}
	return result{j.ImgS, j.Best, j.StepMS, j.RSS, j.First, r.disturbed, j.Version}, nil
}

// mark is the bare program. It knows no ranks: copies run side by side, each on processors of its own.
func (h *harness) mark() contestant {
	c := contestant{name: "mark"}
	path := os.Getenv("BENCH_MARK")
	if path == "" {
		c.missing = "BENCH_MARK names no program\nhint: it is optional; see bench/README.md"
		return c
	}
	if _, err := exec.LookPath(path); err != nil {
		c.missing = fmt.Sprintf("BENCH_MARK: %v", err)
		return c
	}
	c.run = func(ctx context.Context, s setting) (result, error) {
		rs, errs := make([]result, s.World), make([]error, s.World)
		var wg sync.WaitGroup
		for i := range s.World {
			wg.Go(func() {
				rs[i], errs[i] = runMark(ctx, path, s, i)
			})
		}
		wg.Wait()
		var sum result
		for i, r := range rs {
			if errs[i] != nil {
				return result{}, errs[i]
			}
			sum.imgS, sum.best = sum.imgS+r.imgS, sum.best+r.best
			sum.stepMS, sum.rssMB = max(sum.stepMS, r.stepMS), max(sum.rssMB, r.rssMB)
			// Each copy counts the others as strangers.
			sum.disturbed = max(0, r.disturbed-100*float64((s.World-1)*s.Threads)/float64(cpus()))
		}
		return sum, nil
	}
	return c
}

func runMark(ctx context.Context, path string, s setting, i int) (result, error) {
	args := []string{path, strconv.Itoa(s.Batch), s.DType, strconv.Itoa(s.Steps)}
	if _, err := exec.LookPath("taskset"); err == nil && s.World*s.Threads <= cpus() {
		args = append([]string{"taskset", "-c", fmt.Sprintf("%d-%d", i*s.Threads, (i+1)*s.Threads-1)}, args...)
	}
	r, err := execute(ctx, []string{"OMP_NUM_THREADS=" + strconv.Itoa(s.Threads)}, args[0], args[1:]...)
	if err != nil {
		return result{}, err
	}
	return parseMark(r)
}

var markLine = regexp.MustCompile(`([\d.]+) img/s \(best ([\d.]+)\), step ([\d.]+) ms`)

func parseMark(r ran) (result, error) {
	m := markLine.FindStringSubmatch(string(r.stdout))
	if m == nil {
		return result{}, fmt.Errorf("no line \"… N img/s (best N), step N ms\" in its output: %q", tail(string(r.stdout), 3))
	}
	var v [3]float64
	for i := range v {
		v[i], _ = strconv.ParseFloat(m[i+1], 64)
	}
	return result{imgS: v[0], best: v[1], stepMS: v[2], rssMB: r.rssMB, disturbed: r.disturbed, version: strings.TrimSpace(os.Getenv("BENCH_MARK_VERSION"))}, nil
}
