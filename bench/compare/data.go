// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gotrain/gotrain/train/data/images/mosaic"
)

// loaded is what a program of -what data prints.
type loaded struct {
	Version string  `json:"version"`
	Rate    float64 `json:"rate"`
	OurRate float64 `json:"items_per_second"` // gotrain's name for it
}

// loader is one contestant of -what data.
type loader struct {
	name string
	argv func(root string) []string
	env  []string
}

// loads are the values of -load.
var loads = []string{"photographs", "flowers", "augmented", "tokens"}

// augmentation is everything that gotrain can do to a picture, with torchvision's operations and ranges. The peers' program does the same.
var augmentation = []string{"data.policy=randaugment", "data.randaugment_space=torchvision", "data.randaugment_probability=1", "data.randaugment_std=0",
	"data.randaugment_magnitude=3", "data.color_jitter=[0.4,0.4,0.4,0.1]", "data.erasing_probability=0.25", "data.mixup=0.2", "data.cutmix=1"}

// loading is one thing that contestants load.
type loading struct {
	name              string // in -load
	title, unit, root string
	field             []loader
}

// data is -what data: samples a second on one processor, each contestant with one thread.
func (h *harness) data() error {
	for _, name := range strings.Split(h.o.loads, ",") {
		if !slices.Contains(loads, name) {
			return fmt.Errorf("-load: no %q among %s", name, strings.Join(loads, ", "))
		}
	}
	bin, missing := h.build("gotrain", "./cmd/gotrain")
	if missing != "" {
		return errors.New(missing)
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return fmt.Errorf("every contestant is bound to one processor: %w", err)
	}
	small := filepath.Join(h.o.bench, "..", "recipes", "data", "flowers", "train")
	big, tokens := filepath.Join(h.scratch, "500x375"), filepath.Join(h.scratch, "tokens")
	if err := mosaic.Write(small, filepath.Join(big, "train", "all"), 60); err != nil {
		return err
	}
	text := filepath.Join(h.o.bench, "..", "recipes", "data", "shakespeare", "train.txt")
	if _, err := execute(h.ctx, nil, bin, "tokenize", "--tokenizer", "stories260k", "--bos", "--eos", "--out", tokens, text); err != nil {
		return err
	}
	shards, err := filepath.Glob(filepath.Join(tokens, "*.bin"))
	if err != nil || len(shards) != 1 {
		return fmt.Errorf("%d shards of tokens, %w", len(shards), err)
	}
	ours := func(args ...string) loader {
		return loader{name: "gotrain", argv: func(string) []string {
			return append(append([]string{bin, "bench", "data"}, args...), "--no-step", "--json", "--workers", "1", "--seconds", h.loadSeconds())
		}}
	}
	peersWith := func(more []string, root string, names ...string) (out []loader) {
		for _, n := range names {
			l := loader{name: n, argv: func(string) []string {
				return append([]string{python(), h.peer("loaders.py"), "--loader", n, "--root", root, "--seconds", h.loadSeconds()}, more...)
			}}
			out = append(out, l)
			if simd := os.Getenv("BENCH_PILLOW_SIMD"); n == "pillow" && simd != "" {
				l.name, l.env = "pillow-simd", []string{"PYTHONPATH=" + simd}
				out = append(out, l)
			}
		}
		return out
	}
	peers := func(root string, names ...string) []loader { return peersWith(nil, root, names...) }
	pictures := []string{"pillow", "torchvision", "albumentations", "dali"}
	everything := []string{"resnet50"}
	for _, set := range augmentation {
		everything = append(everything, "--set", set)
	}
	flowers := filepath.Join(h.o.bench, "..", "recipes", "data", "flowers")
	for _, l := range []loading{
		{"photographs", "photographs of 500 x 375 to 224 x 224", "pictures/s", big, append([]loader{
			ours("resnet50", "--set", "data.root="+big)}, peers(filepath.Join(big, "train"), pictures...)...)},
		{"flowers", "the bundled flowers (240 x 180) to 224 x 224", "pictures/s", flowers, append([]loader{
			ours("resnet50")}, peers(small, pictures...)...)},
		{"augmented", "the bundled flowers to 224 x 224 with every augmentation", "pictures/s", flowers, append([]loader{
			ours(everything...)}, peersWith([]string{"--augment"}, small, "pillow", "torchvision")...)},
		{"tokens", "windows of 256 tokens", "tokens/s", tokens, append([]loader{
			ours("llama-tiny", "--set", "data.kind=tokens", "--set", "data.root="+tokens, "--set", "text.sequence=256", "--set", "train.batch_per_rank=16")},
			peers(shards[0], "numpy", "datasets")...)},
	} {
		if !slices.Contains(strings.Split(h.o.loads, ","), l.name) {
			continue
		}
		if err := h.loadAll(l); err != nil {
			return err
		}
	}
	return nil
}

func (h *harness) loadSeconds() string { return strconv.FormatFloat(h.o.loadSeconds, 'g', -1, 64) }

// loadAll runs the contestants in turn and prints the median of each. One that fails in the first round is named and left out.
func (h *harness) loadAll(l loading) error {
	rates, versions, gone := map[string][]float64{}, map[string]string{}, map[string]error{}
	for range h.o.rounds {
		for _, c := range l.field {
			if gone[c.name] != nil {
				continue
			}
			fmt.Fprintf(h.progress, "%s: %s\n", l.title, c.name)
			env := append([]string{"GOMAXPROCS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"}, c.env...)
			if c.name != "gotrain" { // the peers' large tensors keep their memory, which would be dear to map again
				env = append(env, "MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=100000000000", "MALLOC_TOP_PAD_=536870912")
			}
			r, err := h.limited(env, "taskset", append([]string{"-c", "0"}, c.argv(l.root)...)...)
			var got loaded
			if err == nil {
				out := r.stdout
				if i := bytes.IndexByte(out, '{'); i > 0 {
					out = out[i:]
				}
				err = json.Unmarshal(out, &got)
			}
			if h.ctx.Err() != nil {
				return h.ctx.Err()
			}
			if err != nil {
				if c.name == "gotrain" {
					return err
				}
				gone[c.name] = err
				continue
			}
			rates[c.name], versions[c.name] = append(rates[c.name], max(got.Rate, got.OurRate)), got.Version
		}
	}
	fmt.Fprintf(h.out, "\n%s, one processor, medians of %d rounds\n", l.title, h.o.rounds)
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\t%s\tlow…high\tgotrain is\t\n", l.unit)
	for _, c := range l.field {
		if err := gone[c.name]; err != nil {
			fmt.Fprintf(w, "%s\tnot measured: %s\n", c.name, tail(err.Error(), 1))
			continue
		}
		v := rates[c.name]
		fmt.Fprintf(w, "%s\t%.0f\t%.0f…%.0f\t%.2f ×\t%s\n", c.name, median(v), slices.Min(v), slices.Max(v), median(rates["gotrain"])/median(v), versions[c.name])
	}
	return w.Flush()
}
