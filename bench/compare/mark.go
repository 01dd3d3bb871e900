// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// mark is the bare ResNet-50.
func (h *harness) mark() contestant {
	return outside("C reference", "BENCH_MARK", func(s setting) []string { return []string{strconv.Itoa(s.Batch), s.DType, strconv.Itoa(s.Steps)} })
}

// outside is a bare program that a variable names.
func outside(name, variable string, args func(s setting) []string) contestant {
	path := os.Getenv(variable)
	if path == "" {
		return contestant{name: name, missing: variable + " is not set\nhint: it is optional; see bench/README.md"}
	}
	if _, err := exec.LookPath(path); err != nil {
		return contestant{name: name, missing: fmt.Sprintf("%s: %v", variable, err)}
	}
	version := strings.TrimSpace(os.Getenv(variable + "_VERSION"))
	return copies(name, version, func(s setting) []string { return append([]string{path}, args(s)...) })
}

// copies is a program that does not know ranks: one copy runs per rank, side by side, each on its own processors, and their rates are summed.
func copies(name, version string, command func(s setting) []string) contestant {
	run := func(ctx context.Context, s setting) (result, error) {
		rs, errs := make([]result, s.World), make([]error, s.World)
		var wg sync.WaitGroup
		for i := range s.World {
			wg.Go(func() {
				rs[i], errs[i] = runCopy(ctx, command(s), s, i)
			})
		}
		wg.Wait()
		sum := result{version: version}
		for i, r := range rs {
			if errs[i] != nil {
				return result{}, errs[i]
			}
			sum.rate, sum.best = sum.rate+r.rate, sum.best+r.best
			sum.stepMS, sum.rssMB, sum.pssMB = max(sum.stepMS, r.stepMS), max(sum.rssMB, r.rssMB), max(sum.pssMB, r.pssMB)
			// Each copy counts the others as strangers.
			sum.disturbed = max(0, r.disturbed-100*float64((s.World-1)*s.Threads)/float64(cpus()))
		}
		return sum, nil
	}
	return contestant{name: name, run: run}
}

func runCopy(ctx context.Context, args []string, s setting, i int) (result, error) {
	if _, err := exec.LookPath("taskset"); err == nil && s.World*s.Threads <= cpus() {
		args = append([]string{"taskset", "-c", fmt.Sprintf("%d-%d", i*s.Threads, (i+1)*s.Threads-1)}, args...)
	}
	r, err := execute(ctx, []string{"OMP_NUM_THREADS=" + strconv.Itoa(s.Threads)}, args[0], args[1:]...)
	if err != nil {
		return result{}, err
	}
	return parseMark(r)
}

var markLine = regexp.MustCompile(`([\d.]+) (?:img|tok)/s \(best ([\d.]+)\), step ([\d.]+) ms`)

func parseMark(r ran) (result, error) {
	m := markLine.FindStringSubmatch(string(r.stdout))
	if m == nil {
		return result{}, fmt.Errorf("no line \"… N img/s (best N), step N ms\" or tok/s in its output: %q", tail(string(r.stdout), 3))
	}
	var v [3]float64
	for i := range v {
		v[i], _ = strconv.ParseFloat(m[i+1], 64)
	}
	return result{rate: v[0], best: v[1], stepMS: v[2], rssMB: r.rssMB, pssMB: r.pssMB, disturbed: r.disturbed}, nil
}
