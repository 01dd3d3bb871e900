// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// What does it cost in accuracy that gradients travel as 16 or 8 bits? -what codec trains bundled models to a held-out loss with each codec and seed, on
// two ranks. float32 also runs with learning rates that are 0.01 % higher and lower, which changes nothing but chance: what rounding does to a run shows
// against that spread. (Sizes of buckets do not change the sums of two ranks at all.) Finished runs are kept in a file, so the same command continues after
// an interruption, within a run too.

// trained is the result of a run.
type trained struct {
	Recipe string             `json:"recipe"`
	Codec  string             `json:"codec"`
	Seed   int                `json:"seed"`
	Steps  int                `json:"steps"`
	Ranks  int                `json:"ranks"`
	Loss   float64            `json:"loss"` // held-out
	More   map[string]float64 `json:"metrics,omitempty"`
}

// same reports whether two rows are of the same run.
func (a trained) same(b trained) bool {
	return a.Recipe == b.Recipe && a.Codec == b.Codec && a.Seed == b.Seed && a.Steps == b.Steps && a.Ranks == b.Ranks
}

// codecs are the contestants and their settings.
var codecs = []struct {
	name string
	lr   float64 // times that of the recipe
	set  []string
}{
	{"none", 1, nil},
	{"none, learning rate + 0.01 %", 1.0001, nil},
	{"none, learning rate - 0.01 %", 0.9999, nil},
	{"f16", 1, []string{"comm.compress=f16"}},
	{"bf16", 1, []string{"comm.compress=bf16"}},
	{"int8", 1, []string{"comm.compress=int8"}},
	{"int8, no error feedback", 1, []string{"comm.compress=int8", "comm.compress_error_feedback=false"}},
}

// codecRecipes are the models, and what makes them run for a number of steps.
var codecRecipes = map[string]struct {
	lr  float64
	set []string
}{
	"llama-tiny": {2e-3, []string{"eval.every_steps=0"}},
	"quickstart": {0.1, []string{"run.epochs=0", "eval.every_epochs=0", "schedule.warmup_epochs=0", "schedule.warmup_steps=50"}},
}

// codec is -what codec.
func (h *harness) codec() error {
	bin, missing := h.build("gotrain", "./cmd/gotrain")
	if missing != "" {
		return errors.New(missing)
	}
	done, err := readTrained(h.o.codecFile)
	if err != nil {
		return err
	}
	for _, recipe := range strings.Split(h.o.codecRecipes, ",") {
		if _, ok := codecRecipes[recipe]; !ok {
			return fmt.Errorf("-codec-recipes %q: only llama-tiny and quickstart", recipe)
		}
		for seed := 1; seed <= h.o.codecSeeds; seed++ {
			for i := range codecs {
				row := trained{Recipe: recipe, Codec: codecs[i].name, Seed: seed, Steps: h.o.codecSteps, Ranks: 2}
				if slices.ContainsFunc(done, row.same) {
					continue
				}
				fmt.Fprintf(h.progress, "%s, %s, seed %d, %d steps\n", recipe, row.Codec, seed, row.Steps)
				if err := h.train(bin, &row, codecs[i].lr, codecs[i].set); err != nil {
					return err
				}
				done = append(done, row)
				if err := writeTrained(h.o.codecFile, done); err != nil {
					return err
				}
			}
		}
		h.printTrained(recipe, done)
	}
	return nil
}

// train does one run, or the rest of one.
func (h *harness) train(bin string, row *trained, lr float64, set []string) error {
	recipe := codecRecipes[row.Recipe]
	name := strings.NewReplacer(" ", "-", ",", "", "%", "percent").Replace(fmt.Sprintf("%s-%s-%d-%d", row.Recipe, row.Codec, row.Seed, row.Steps))
	dir := filepath.Join(strings.TrimSuffix(h.o.codecFile, ".json")+"-runs", name)
	args := []string{"run", row.Recipe, "--ranks", strconv.Itoa(row.Ranks)}
	for _, s := range slices.Concat(recipe.set, []string{"run.output_dir=" + dir, "run.steps=" + strconv.Itoa(row.Steps),
		"run.seed=" + strconv.Itoa(row.Seed), "optim.lr=" + strconv.FormatFloat(recipe.lr*lr, 'g', -1, 64), "checkpoint.every_steps=250",
		"log.every_steps=100"}, set) {
		args = append(args, "--set", s)
	}
	if row.Steps < 1000 && !strings.HasPrefix(row.Codec, "none") { // a trial: most of its steps are compressed all the same
		args = append(args, "--set", "comm.compress_warmup_steps="+strconv.Itoa(row.Steps/10))
	}
	if _, err := execute(h.ctx, nil, bin, args...); err != nil {
		return err
	}
	metrics, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return err
	}
	if err := row.parse(metrics); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return os.RemoveAll(dir)
}

// parse takes the last evaluation, and what the last step says of compression.
func (row *trained) parse(jsonl []byte) error {
	row.Loss, row.More = math.NaN(), map[string]float64{}
	for line := range strings.Lines(string(jsonl)) {
		var e struct {
			Event   string
			Step    int
			Loss    *float64
			Metrics []struct {
				Name  string
				Value *float64
			}
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		last := e.Event == "eval" && e.Step == row.Steps
		if last && e.Loss != nil {
			row.Loss = *e.Loss
		}
		for _, m := range e.Metrics {
			if m.Value != nil && (last || strings.HasPrefix(m.Name, "compress_")) {
				row.More[m.Name] = *m.Value
			}
		}
	}
	if math.IsNaN(row.Loss) {
		return fmt.Errorf("no held-out loss of step %d", row.Steps)
	}
	return nil
}

func readTrained(path string) (rows []trained, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &rows)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return rows, err
}

// writeTrained replaces the file at once.
func writeTrained(path string, rows []trained) error {
	b, err := json.MarshalIndent(rows, "", " ")
	if err == nil {
		err = os.WriteFile(path+".tmp", append(b, '\n'), 0o666)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	return err
}

func (h *harness) printTrained(recipe string, rows []trained) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r trained) bool { return r.Recipe != recipe || r.Steps != h.o.codecSteps })
	fmt.Fprintf(h.out, "\n%s, %d steps, 2 ranks: held-out loss\n", recipe, h.o.codecSteps)
	printTrained(h.out, rows)
}

// printTrained prints a row for each codec: the loss of each seed, the mean, and the mean difference from float32 with the same seed, with its standard
// error: a difference of less than twice that is chance.
func printTrained(out io.Writer, rows []trained) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	base := map[int][]float64{} // float32, by seed
	for _, r := range rows {
		if strings.HasPrefix(r.Codec, "none") {
			base[r.Seed] = append(base[r.Seed], r.Loss)
		}
	}
	for _, c := range codecs {
		var each []string
		var loss, less []float64
		var last trained
		for _, r := range rows {
			if r.Codec != c.name {
				continue
			}
			each, loss, last = append(each, fmt.Sprintf("%.4f", r.Loss)), append(loss, r.Loss), r
			if b := base[r.Seed]; len(b) > 0 && !strings.HasPrefix(c.name, "none") {
				m, _ := moments(b)
				less = append(less, r.Loss-m)
			}
		}
		if len(each) == 0 {
			continue
		}
		m, _ := moments(loss)
		also := "\t"
		if d, dev := moments(less); len(less) > 0 {
			also = fmt.Sprintf("%+.4f\t", d)
			if len(less) > 1 {
				also = fmt.Sprintf("%+.4f ± %.4f\t", d, dev/math.Sqrt(float64(len(less))))
			}
		}
		if e, ok := last.More["compress_error"]; ok {
			also += fmt.Sprintf("%.2f times smaller\t%.2f %% of the last gradient lost", last.More["compress_ratio"], 100*e)
		}
		fmt.Fprintf(w, "  %s\t%s\tmean %.4f\t%s\t\n", c.name, strings.Join(each, " "), m, also)
	}
	w.Flush()
	squares, free := 0.0, 0.0
	for _, b := range base {
		_, dev := moments(b)
		squares, free = squares+dev*dev*float64(len(b)-1), free+float64(len(b)-1)
	}
	if free > 0 {
		fmt.Fprintf(out, "  float32 with learning rates 0.01 %% apart: a standard deviation of %.4f for one seed\n", math.Sqrt(squares/free))
	}
}

// moments are the mean and the standard deviation, 0 of fewer than two.
func moments(v []float64) (mean, dev float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	if len(v) < 2 {
		return mean, 0
	}
	for _, x := range v {
		dev += (x - mean) * (x - mean) / float64(len(v)-1)
	}
	return mean, math.Sqrt(dev)
}
