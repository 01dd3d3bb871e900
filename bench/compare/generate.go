// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gotrain/gotrain/bench/shapes"
	"github.com/gotrain/gotrain/graph/models/llama"
)

// written holds the measurements of one generation setup.
type written struct {
	s       setting // Batch: texts at the same time
	bytes   int64   // weights that a step reads
	read    []float64
	tokens  []float64 // a second, of all texts
	others  []float64 // percent of the machine that others used, the worse of the two
	failure error
}

// generate measures gotrain's generation speed next to the speed at which the weights can be read. Each round reads, then generates.
func (h *harness) generate() error {
	bin, missing := h.build("gotrain", "./cmd/gotrain")
	if missing != "" {
		return fmt.Errorf("gotrain: %s", missing)
	}
	reader := filepath.Join(h.scratch, "read_bandwidth")
	if out, err := exec.CommandContext(h.ctx, "cc", "-O3", "-march=native", "-pthread", h.peer("read_bandwidth.c"), "-o", reader).CombinedOutput(); err != nil {
		return fmt.Errorf("peer/read_bandwidth.c: cc: %w %s\nhint: apt-get install gcc", err, tail(string(out), 3))
	}
	all, err := h.writings()
	if err != nil {
		return err
	}
	for i := range all {
		w := &all[i]
		for round := range h.o.rounds {
			if err := h.round(w, bin, reader); h.ctx.Err() != nil {
				return h.ctx.Err()
			} else if err != nil {
				w.failure = err
				fmt.Fprintf(h.out, "generate, %s, round %d failed: %v\n", w.label(), round+1, err)
				continue
			}
			fmt.Fprintf(
				h.progress,
				"generate, %s, round %d: %s tok/s, memory %.1f GB/s\n",
				w.label(),
				round+1,
				rate(w.tokens[len(w.tokens)-1]),
				w.read[len(w.read)-1],
			)
		}
	}
	printGenerate(h.out, all, h.o.disturbed)
	return nil
}

// writings crosses the flags and writes the models.
func (h *harness) writings() ([]written, error) {
	settings, err := h.o.settings(strings.Split(h.o.shapes, ","), []int{1, 4}, []int{h.o.tokens + 8})
	if err != nil {
		return nil, err
	}
	var all []written
	seen := map[setting]bool{}
	for _, s := range settings {
		if s.World = 1; seen[s] { // 2x1 and 1x1 are the same here
			continue
		}
		seen[s] = true
		c, err := shapes.Llama(s.Model, s.Seq)
		if err != nil {
			return nil, fmt.Errorf("-shape: %w", err)
		}
		all = append(all, written{s: s, bytes: weightBytes(c, s.DType)})
	}
	for _, name := range strings.Split(h.o.shapes, ",") {
		c, err := shapes.Llama(name, h.o.tokens+8)
		if err != nil {
			return nil, err
		}
		if err := writeModel(filepath.Join(h.scratch, name), c); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// weightBytes is what a token must read: all weights but an untied embedding, of which it reads one row.
func weightBytes(c llama.Config, dtype string) int64 {
	n := c.Params()
	if !c.Tied {
		n -= int64(c.Vocab) * int64(c.Dim)
	}
	if dtype == "bf16" {
		return 2 * n
	}
	return 4 * n
}

func (w written) label() string {
	return fmt.Sprintf("%s %s %d threads, %d texts", w.s.Model, w.s.DType, w.s.Threads, w.s.Batch)
}

// round reads memory for a second and generates one text.
func (h *harness) round(w *written, bin, reader string) error {
	ctx, cancel := context.WithTimeout(h.ctx, h.o.timeout)
	defer cancel()
	r, err := execute(ctx, nil, reader, strconv.FormatInt(w.bytes, 10), strconv.Itoa(w.s.Threads), "1")
	if err != nil {
		return err
	}
	var read struct {
		GBs float64 `json:"gb_s"`
	}
	if err := json.Unmarshal(r.stdout, &read); err != nil || read.GBs <= 0 {
		return fmt.Errorf("the output of read_bandwidth: %q", r.stdout)
	}
	model := filepath.Join(h.scratch, w.s.Model)
	args := []string{"generate", model, "--tokenizer", filepath.Join(model, tokenizerName), "--json", "--temperature", "0",
		"--tokens", strconv.Itoa(h.o.tokens), "--dtype", w.s.DType, "--threads", strconv.Itoa(w.s.Threads)}
	for range w.s.Batch {
		args = append(args, "--prompt", "a")
	}
	g, err := execute(ctx, nil, bin, args...)
	if err != nil {
		return err
	}
	tokens, err := parseGenerate(g.stdout, h.o.tokens)
	if err != nil {
		return err
	}
	w.read, w.tokens, w.others = append(w.read, read.GBs), append(w.tokens, tokens), append(w.others, max(r.disturbed, g.disturbed))
	return nil
}

// parseGenerate reads the lines of gotrain generate --json. The first token of a text comes with its prompt, so that it is not counted.
func parseGenerate(out []byte, want int) (float64, error) {
	line, _, _ := strings.Cut(string(out), "\n")
	var j struct {
		Tokens []int32 `json:"tokens"`
		Rate   float64 `json:"tokens_per_second"`
	}
	if err := json.Unmarshal([]byte(line), &j); err != nil || j.Rate <= 0 {
		return 0, fmt.Errorf("the output of gotrain generate: %q", line)
	}
	if len(j.Tokens) != want {
		return 0, fmt.Errorf("gotrain generate wrote %d tokens instead of %d", len(j.Tokens), want)
	}
	return j.Rate * float64(want-1) / float64(want), nil
}

func printGenerate(out io.Writer, all []written, limit float64) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "generation\tthreads\ttexts\tweights MB\tmemory GB/s\tbound tok/s\tgotrain tok/s\tlow…high\tof the bound\tothers\t\n")
	for _, g := range all {
		at := fmt.Sprintf("%s %s\t%d\t%d\t%.1f", g.s.Model, g.s.DType, g.s.Threads, g.s.Batch, float64(g.bytes)/1e6)
		if len(g.tokens) == 0 {
			fmt.Fprintf(w, "%s\t-\t\t\t\t\t\t\n", at)
			continue
		}
		low, high := g.tokens[0], g.tokens[0]
		for _, v := range g.tokens {
			low, high = min(low, v), max(high, v)
		}
		mark := ""
		if median(g.others) > limit {
			mark = "!"
		}
		bound := median(g.read) * 1e9 / float64(g.bytes) * float64(g.s.Batch)
		fmt.Fprintf(
			w,
			"%s\t%.1f\t%s\t%s%s\t%s…%s\t%.0f%%\t%.0f%%\t\n",
			at,
			median(g.read),
			rate(bound),
			rate(median(g.tokens)),
			mark,
			rate(low),
			rate(high),
			100*median(g.tokens)/bound,
			median(g.others),
		)
	}
	w.Flush()
	fmt.Fprintf(
		out,
		"medians over rounds; tokens of all texts; bound = every weight read once for each token of a text, at the speed of a plain read of as many bytes "+
			"by as many threads; "+
			"! = others had more than %.0f %% of the machine\n",
		limit,
	)
}
