// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// predicting is one way to classify the pictures of a list.
type predicting struct {
	name string
	argv []string
}

// predicted is what a contestant of -what predict says.
type predicted struct {
	Version string  `json:"version"`
	Rate    float64 `json:"rate"`
	Labels  []int   `json:"labels"`
}

// predict is -what predict: pictures a second from file to class, of gotrain predict and of PyTorch, eager and compiled, with the same weights and the same
// list, in turn.
func (h *harness) predict() error {
	bin, missing := h.build("gotrain", "./cmd/gotrain")
	if missing != "" {
		return errors.New(missing)
	}
	list := filepath.Join(h.scratch, "list.txt")
	if err := h.pictureList(list); err != nil {
		return err
	}
	settings, err := h.o.settings(nil, []int{32}, nil)
	if err != nil {
		return err
	}
	seen := map[setting]bool{}
	for _, depth := range strings.Split(h.o.depths, ",") {
		weights, err := h.resnetCheckpoint(bin, depth)
		if err != nil {
			return err
		}
		for _, s := range settings {
			if s.World = 1; seen[s] {
				continue
			}
			if err := h.predictAll(bin, weights, list, depth, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// pictureList names the bundled photographs again and again, until there are enough.
func (h *harness) pictureList(to string) error {
	files, err := filepath.Glob(filepath.Join(h.o.bench, "..", "recipes", "data", "flowers", "*", "*", "*.jpg"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no photographs: %w", err)
	}
	var b strings.Builder
	for i := range h.o.pictures {
		fmt.Fprintln(&b, files[i%len(files)])
	}
	return os.WriteFile(to, []byte(b.String()), 0o644)
}

// resnetCheckpoint trains two steps on the photographs.
func (h *harness) resnetCheckpoint(bin, depth string) (string, error) {
	dir := filepath.Join(h.scratch, "resnet"+depth)
	_, err := execute(h.ctx, nil, bin, "run", "resnet50", "--ranks", "1", "--set", "run.output_dir="+dir, "--set", "run.steps=2",
		"--set", "train.batch_per_rank=4", "--set", "model.depth="+depth, "--set", "eval.enabled=false", "--set", "train.dtype=f32", "--set", "train.conv_algorithm=direct",
		"--set", "checkpoint.every_steps=2", "--set", "checkpoint.every_epochs=0", "--set", "data.root="+filepath.Join(h.o.bench, "..", "recipes", "data", "flowers"))
	return filepath.Join(dir, "checkpoints", "step-00000002"), err
}

func (h *harness) predictAll(bin, checkpoint, list, depth string, s setting) error {
	threads, dtype := strconv.Itoa(s.Threads), s.DType
	torch := func(more ...string) []string {
		return append([]string{python(), h.peer("resnet_predict.py"), "--weights", filepath.Join(checkpoint, "model.safetensors"), "--list", list,
			"--depth", depth, "--threads", threads, "--dtype", dtype, "--workers", strconv.Itoa(h.o.loaders)}, more...)
	}
	field := []predicting{
		{"gotrain predict", []string{"sh", "-c", `exec "$@" 2>&1`, "sh", bin, "predict", checkpoint, "-", "--json", "--top", "1", "--threads", threads,
			"--dtype", dtype}},
		{"PyTorch", torch()},
		{"PyTorch, compiled", torch("--compile")},
	}
	field[0].argv[2] += " <" + list
	rates, versions, labels, gone := map[string][]float64{}, map[string]string{}, map[string][]int{}, map[string]error{}
	for round := range h.o.rounds {
		for _, c := range field {
			if gone[c.name] != nil {
				continue
			}
			r, err := h.limited(nil, c.argv[0], c.argv[1:]...)
			var got predicted
			if err == nil {
				got, err = parsePredictions(r.stdout)
			}
			if h.ctx.Err() != nil {
				return h.ctx.Err()
			}
			if err != nil {
				gone[c.name] = err
				continue
			}
			fmt.Fprintf(h.progress, "predict, resnet%s %s, round %d: %s: %.1f pictures/s, others had %.0f %% of the machine\n", depth, dtype, round+1, c.name, got.Rate,
				r.disturbed)
			rates[c.name], versions[c.name], labels[c.name] = append(rates[c.name], got.Rate), got.Version, got.Labels
		}
	}
	if err := gone[field[0].name]; err != nil {
		return err
	}
	fmt.Fprintf(h.out, "\nresnet%s, %s, %d photographs to classes, %s threads, medians of %d rounds\n", depth, dtype, h.o.pictures, threads, h.o.rounds)
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tpictures/s\tlow…high\tgotrain is\tsame class\t\n")
	for _, c := range field {
		if err := gone[c.name]; err != nil {
			fmt.Fprintf(w, "%s\tnot measured: %s\n", c.name, tail(err.Error(), 1))
			continue
		}
		v := rates[c.name]
		fmt.Fprintf(w, "%s\t%.1f\t%.1f…%.1f\t%.2f ×\t%.1f %%\t%s\n", c.name, median(v), slices.Min(v), slices.Max(v), median(rates[field[0].name])/median(v),
			100*agreement(labels[field[0].name], labels[c.name]), versions[c.name])
	}
	return w.Flush()
}

// agreement is the part of the pictures with the same class.
func agreement(a, b []int) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return 0
	}
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	return float64(same) / float64(len(a))
}

var predictRate = regexp.MustCompile(`(?m)^[0-9,]+ pictures? in .*, ([0-9.]+) a second$`)

// parsePredictions reads the lines of gotrain predict --json with its last message, or the one line of the peer.
func parsePredictions(out []byte) (predicted, error) {
	var p predicted
	if m := predictRate.FindSubmatch(out); m != nil {
		p.Rate, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	for line := range strings.Lines(string(out)) {
		var one struct {
			predicted
			Classes []struct {
				Label int `json:"label"`
			} `json:"classes"`
		}
		if json.Unmarshal([]byte(line), &one) != nil {
			continue // a message
		}
		if one.Rate > 0 {
			return one.predicted, nil
		}
		for _, c := range one.Classes {
			p.Labels = append(p.Labels, c.Label)
		}
	}
	if p.Rate <= 0 || len(p.Labels) == 0 {
		return p, fmt.Errorf("no rate and labels in %q", tail(string(out), 3))
	}
	return p, nil
}
