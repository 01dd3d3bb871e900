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
// two ranks, where the size of buckets cannot change a sum: the spread to compare with is that of seeds. Finished runs are kept in a file, so the same
// command continues after an interruption, within a run too.

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
	set  []string
}{
	{"none", nil},
	{"f16", []string{"comm.compress=f16"}},
	{"bf16", []string{"comm.compress=bf16"}},
	{"int8", []string{"comm.compress=int8"}},
	{"int8, no error feedback", []string{"comm.compress=int8", "comm.compress_error_feedback=false"}},
}

// codecRecipes are the models, and what makes them run for a number of steps.
var codecRecipes = map[string][]string{
	"llama-tiny": {"eval.every_steps=0"},
	"quickstart": {"run.epochs=0", "eval.every_epochs=0", "schedule.warmup_epochs=0", "schedule.warmup_steps=50"},
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
		if codecRecipes[recipe] == nil {
			return fmt.Errorf("-codec-recipes %q: only llama-tiny and quickstart", recipe)
		}
		for seed := 1; seed <= h.o.codecSeeds; seed++ {
			for i := range codecs {
				row := trained{Recipe: recipe, Codec: codecs[i].name, Seed: seed, Steps: h.o.codecSteps, Ranks: 2}
				if slices.ContainsFunc(done, row.same) {
					continue
				}
				fmt.Fprintf(h.progress, "%s, %s, seed %d, %d steps\n", recipe, row.Codec, seed, row.Steps)
				if err := h.train(bin, &row, codecs[i].set); err != nil {
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
func (h *harness) train(bin string, row *trained, set []string) error {
	name := strings.NewReplacer(" ", "-", ",", "").Replace(fmt.Sprintf("%s-%s-%d-%d", row.Recipe, row.Codec, row.Seed, row.Steps))
	dir := filepath.Join(strings.TrimSuffix(h.o.codecFile, ".json")+"-runs", name)
	args := []string{"run", row.Recipe, "--ranks", strconv.Itoa(row.Ranks)}
	for _, s := range slices.Concat(codecRecipes[row.Recipe], []string{"run.output_dir=" + dir, "run.steps=" + strconv.Itoa(row.Steps),
		"run.seed=" + strconv.Itoa(row.Seed), "checkpoint.every_steps=250", "log.every_steps=100"}, set) {
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

// printTrained prints a row for each codec: the loss of each seed, the mean, and the mean of its differences from float32 with the same seed, with the standard
// error of that mean.
func printTrained(out io.Writer, rows []trained) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	plain := map[int]float64{} // float32, by seed
	var losses []float64
	for _, r := range rows {
		if r.Codec == "none" {
			plain[r.Seed] = r.Loss
			losses = append(losses, r.Loss)
		}
	}
	for _, c := range codecs {
		var all, beside []float64
		var each []string
		var last trained
		for _, r := range rows {
			if r.Codec != c.name {
				continue
			}
			all, each, last = append(all, r.Loss), append(each, fmt.Sprintf("%.4f", r.Loss)), r
			if base, ok := plain[r.Seed]; ok {
				beside = append(beside, r.Loss-base)
			}
		}
		if len(all) == 0 {
			continue
		}
		m, _ := meanError(all)
		d, e := meanError(beside)
		also := ""
		if e, ok := last.More["compress_error"]; ok {
			also = fmt.Sprintf("\t%.2f times smaller\t%.2f %% of the last gradient lost", last.More["compress_ratio"], 100*e)
		}
		fmt.Fprintf(w, "  %s\t%s\tmean %.4f\t%+.4f ± %.4f%s\t\n", c.name, strings.Join(each, " "), m, d, e, also)
	}
	w.Flush()
	_, e := meanError(losses)
	fmt.Fprintf(out, "  ± is the standard error of the mean difference; seeds of float32 deviate by %.4f\n", e*math.Sqrt(float64(len(losses))))
}

// meanError returns the mean and its standard error; 0 for fewer than two values.
func meanError(v []float64) (mean, err float64) {
	if len(v) == 0 {
		return math.NaN(), 0
	}
	for _, x := range v {
		mean += x / float64(len(v))
	}
	if len(v) < 2 {
		return mean, 0
	}
	sum := 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum / float64(len(v)-1) / float64(len(v)))
}
