// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	peer    []float64 // of llama.cpp, one text
	others  []float64 // percent of the machine that others used, the worst of the round
	failure error
}

// generators are the programs that take part.
type generators struct {
	bin, reader string
	llamaCpp    string // Python that has it; "": not installed
}

// generate measures gotrain's generation speed next to llama.cpp's and to the speed at which the weights can be read. Each round reads, generates, and reads
// again.
func (h *harness) generate() error {
	var g generators
	var missing string
	if g.bin, missing = h.build("gotrain", "./cmd/gotrain"); missing != "" {
		return fmt.Errorf("gotrain: %s", missing)
	}
	if g.reader, missing = h.build("bandwidth", "./bench/bandwidth"); missing != "" {
		return fmt.Errorf("bench/bandwidth: %s", missing)
	}
	if g.llamaCpp, missing = h.llamaCpp(); missing != "" {
		fmt.Fprintf(h.out, "llama.cpp does not take part: %s\n", missing)
	}
	all, err := h.writings()
	if err != nil {
		return err
	}
	for i := range all {
		w := &all[i]
		for round := range h.o.rounds {
			if err := h.round(w, g); h.ctx.Err() != nil {
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
	return exceeded(all)
}

// llamaCpp finds the Python that has llama.cpp and what converts the weights for it, or says what is missing.
func (h *harness) llamaCpp() (python, missing string) {
	python = cmp.Or(os.Getenv("BENCH_LLAMACPP"), os.Getenv("BENCH_PYTHON"), "python3")
	out, err := exec.CommandContext(h.ctx, python, "-c", "import llama_cpp, gguf, safetensors").CombinedOutput()
	if err != nil {
		return "", fmt.Sprintf("%s: %s (pip install llama-cpp-python gguf safetensors, and name the Python in BENCH_LLAMACPP)", python, tail(string(out), 1))
	}
	return python, ""
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

// round reads memory, generates, lets llama.cpp generate, and reads memory again: the faster reading is the bound.
func (h *harness) round(w *written, g generators) error {
	ctx, cancel := context.WithTimeout(h.ctx, h.o.timeout)
	defer cancel()
	before, busy, err := h.read(ctx, w, g.reader)
	if err != nil {
		return err
	}
	model := filepath.Join(h.scratch, w.s.Model)
	args := []string{"generate", model, "--tokenizer", filepath.Join(model, tokenizerName), "--json", "--temperature", "0",
		"--tokens", strconv.Itoa(h.o.tokens), "--dtype", w.s.DType, "--threads", strconv.Itoa(w.s.Threads)}
	for range w.s.Batch {
		args = append(args, "--prompt", "a")
	}
	r, err := execute(ctx, nil, g.bin, args...)
	if err != nil {
		return err
	}
	tokens, err := parseGenerate(r.stdout, h.o.tokens)
	if err != nil {
		return err
	}
	after, again, err := h.read(ctx, w, g.reader)
	if err != nil {
		return err
	}
	busy = max(busy, again, r.disturbed)
	if g.llamaCpp != "" && w.s.Batch == 1 {
		p, err := execute(ctx, nil, g.llamaCpp, h.peer("generate_llamacpp.py"), model, w.s.DType, strconv.Itoa(w.s.Threads), strconv.Itoa(h.o.tokens))
		if err != nil {
			return err
		}
		var peer struct {
			Rate float64 `json:"tokens_per_second"`
		}
		if err := json.Unmarshal(p.stdout, &peer); err != nil || peer.Rate <= 0 {
			return fmt.Errorf("the output of generate_llamacpp.py: %q", p.stdout)
		}
		w.peer, busy = append(w.peer, peer.Rate), max(busy, p.disturbed)
	}
	w.read, w.tokens, w.others = append(w.read, max(before, after)), append(w.tokens, tokens), append(w.others, busy)
	return nil
}

// read returns how fast as many bytes as the weights have are read, in GB/s, and what others used of the machine.
func (h *harness) read(ctx context.Context, w *written, reader string) (rate, disturbed float64, err error) {
	r, err := execute(ctx, nil, reader, "-bytes", strconv.FormatInt(w.bytes, 10), "-threads", strconv.Itoa(w.s.Threads), "-seconds", "0.7")
	if err != nil {
		return 0, 0, err
	}
	var read struct {
		GBs float64 `json:"gb_s"`
	}
	if err := json.Unmarshal(r.stdout, &read); err != nil || read.GBs <= 0 {
		return 0, 0, fmt.Errorf("the output of bench/bandwidth: %q", r.stdout)
	}
	return read.GBs, r.disturbed, nil
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

// parts are the parts of the bound of each round, sorted.
func (w written) parts() []float64 {
	var p []float64
	for i, t := range w.tokens {
		p = append(p, t/(w.read[i]*1e9/float64(w.bytes)*float64(w.s.Batch)))
	}
	slices.Sort(p)
	return p
}

// tolerance is by how much a bound may be exceeded: clocks have errors, and reading and generating do not see the same instant.
const tolerance = 0.05

// exceeded returns an error if a bound is exceeded: then it is none, and whatever is compared with it is worthless.
func exceeded(all []written) error {
	var errs []error
	for _, w := range all {
		if len(w.tokens) == 0 {
			continue
		}
		if p := median(w.parts()); p > 1+tolerance {
			errs = append(errs, fmt.Errorf("%s: %.0f %% of the bound on generation speed: the loop that reads memory does not reach its speed, or the machine "+
				"changed its own\nhint: repeat it on an idle machine; if it stays so, report it with the output of go run ./bench/bandwidth", w.label(), 100*p))
		}
	}
	return errors.Join(errs...)
}

func printGenerate(out io.Writer, all []written, limit float64) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "generation\tthreads\ttexts\tweights MB\tmemory GB/s\tbound tok/s\tgotrain tok/s\tlow…high\tof the bound\t")
	fmt.Fprint(w, "llama.cpp tok/s\tgotrain is\tothers\t\n")
	for _, g := range all {
		at := fmt.Sprintf("%s %s\t%d\t%d\t%.1f", g.s.Model, g.s.DType, g.s.Threads, g.s.Batch, float64(g.bytes)/1e6)
		if len(g.tokens) == 0 {
			fmt.Fprintf(w, "%s\t-\t\t\t\t\t\t\t\t\n", at)
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
		peer, times := "-", "-"
		if len(g.peer) > 0 {
			peer, times = rate(median(g.peer)), fmt.Sprintf("%.2fx", median(g.tokens)/median(g.peer))
		}
		bound := median(g.read) * 1e9 / float64(g.bytes) * float64(g.s.Batch)
		fmt.Fprintf(
			w,
			"%s\t%.1f\t%s\t%s%s\t%s…%s\t%.0f%%\t%s\t%s\t%.0f%%\t\n",
			at,
			median(g.read),
			rate(bound),
			rate(median(g.tokens)),
			mark,
			rate(low),
			rate(high),
			100*median(g.parts()),
			peer,
			times,
			median(g.others),
		)
	}
	w.Flush()
	fmt.Fprintf(
		out,
		"medians over rounds; tokens of all texts; bound = every weight read once for each token of a text, at the speed at which as many threads read as "+
			"many bytes before or after it; llama.cpp writes one text; "+
			"! = others had more than %.0f %% of the machine\n",
		limit,
	)
}
