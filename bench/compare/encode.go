// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// How fast are gradients encoded and decoded? -what encode runs BenchmarkCodec of package reduce, with the instruction sets of this processor, and a bare
// program: $BENCH_MARK_CODEC prints "128 KiB of f32" and below it lines "NAME 12.3 GB/s …" with the names of the benchmark.

// speeds are GB/s of float32, by name, and KiB of float32.
type speeds map[string]map[int]float64

// keep keeps the highest speed of each row.
func (s speeds) keep(more speeds) {
	for name, of := range more {
		if s[name] == nil {
			s[name] = map[int]float64{}
		}
		for kib, v := range of {
			s[name][kib] = max(s[name][kib], v)
		}
	}
}

// encode is -what encode.
func (h *harness) encode() error {
	bin := filepath.Join(h.scratch, "reduce.test")
	cmd := exec.CommandContext(h.ctx, "go", "test", "-c", "-o", bin, "./ddp/comm/reduce")
	cmd.Dir = filepath.Join(h.o.bench, "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("package reduce cannot be built: %w: %s", err, tail(string(out), 3))
	}
	type contestant struct {
		name, isa string
		args      []string
		best      speeds
	}
	bench := []string{bin, "-test.run=^$", "-test.bench=^BenchmarkCodec$", "-test.benchtime=5ms", "-test.count=4", "-test.cpu=1"}
	field := []*contestant{{"gotrain", "avx512", bench, speeds{}}, {"gotrain, AVX2 only", "avx2", bench, speeds{}}}
	if mark := strings.Fields(os.Getenv("BENCH_MARK_CODEC")); len(mark) == 0 {
		fmt.Fprintln(h.out, "mark does not take part: BENCH_MARK_CODEC names no program\nhint: it is optional; see bench/README.md")
	} else {
		field = append(field, &contestant{"mark", "", mark, speeds{}})
	}
	for round := range h.o.rounds {
		for _, c := range field {
			command := pinned(0, c.args...)
			r, err := execute(h.ctx, []string{"GOTRAIN_MAX_ISA=" + c.isa}, command[0], command[1:]...)
			if err != nil {
				return err
			}
			got := parseSpeeds(string(r.stdout))
			if len(got) == 0 {
				return fmt.Errorf("%s: its output has no results: %q", c.name, tail(string(r.stdout), 3))
			}
			c.best.keep(got)
			fmt.Fprintf(h.progress, "codecs, round %d, %s done\n", round+1, c.name)
		}
	}
	var mark speeds
	if len(field) > 2 {
		mark = field[2].best
	}
	return printSpeeds(h.out, h.o.rounds, field[0].best, field[1].best, mark)
}

var (
	benchSpeed = regexp.MustCompile(`^BenchmarkCodec/(.*)/KiB=(\d+)\S*\s+\d+\s+\S+ ns/op\s+([\d.]+) MB/s`)
	markSize   = regexp.MustCompile(`^(\d+) KiB of f32`)
	markSpeed  = regexp.MustCompile(`^\s+(\S.*?)\s+([\d.]+) GB/s`)
)

// parseSpeeds reads the output of either program.
func parseSpeeds(out string) speeds {
	s := speeds{}
	kib := 0
	for line := range strings.Lines(out) {
		if m := benchSpeed.FindStringSubmatch(line); m != nil {
			size, _ := strconv.Atoi(m[2])
			v, _ := strconv.ParseFloat(m[3], 64)
			s.keep(speeds{strings.ReplaceAll(m[1], "_", " "): {size: v / 1e3}})
		} else if m := markSize.FindStringSubmatch(line); m != nil {
			kib, _ = strconv.Atoi(m[1])
		} else if m := markSpeed.FindStringSubmatch(line); m != nil && kib > 0 {
			v, _ := strconv.ParseFloat(m[2], 64)
			s.keep(speeds{m[1]: {kib: v}})
		}
	}
	return s
}

// printSpeeds prints a row for each operation and size, with the ratio to the mark: above 1 is faster.
func printSpeeds(out io.Writer, rounds int, best, avx2, mark speeds) error {
	if len(best) == 0 {
		return errors.New("no codec was measured")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "GB/s of f32\tKiB\tgotrain\tAVX2 only\tmark\tgotrain / mark\tAVX2 only / mark\t")
	lowest := 0.0
	for _, name := range slices.Sorted(maps.Keys(best)) {
		for _, kib := range slices.Sorted(maps.Keys(best[name])) {
			a, b, m := best[name][kib], avx2[name][kib], mark[name][kib]
			ratios := [2]float64{}
			if m > 0 {
				ratios = [2]float64{a / m, b / m}
				if least := min(ratios[0], ratios[1]); lowest == 0 || least < lowest {
					lowest = least
				}
			}
			fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%s\t%s\t%s\t\n", name, kib, a, b, known(m, "%.1f"), known(ratios[0], "%.2f"), known(ratios[1], "%.2f"))
		}
	}
	w.Flush()
	fmt.Fprintf(out, "best of %d rounds in turn; above 1 is faster than the mark", rounds)
	if lowest > 0 {
		fmt.Fprintf(out, "; the lowest ratio is %.2f", lowest)
	}
	fmt.Fprintln(out)
	return nil
}
