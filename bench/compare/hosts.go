// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// timing is how one run went: training steps between hosts, in milliseconds.
type timing struct {
	step, exposed    float64 // exposed: communication that compute does not hide
	forecast, hidden float64 // step and exposed communication that gotrain plan predicts; 0: no prediction
	bound            float64 // exposed communication on an ideal wire, by gotrain plan
	disturbed        float64
}

// trainer is a contestant of -what hosts.
type trainer struct {
	name string
	run  func(ctx context.Context, n network, s setting) (timing, error)
}

// hosts compares training between network namespaces: gotrain with each codec, and PyTorch DDP over gloo with and without its f16 hook.
func (h *harness) hosts() error {
	nets, err := networks(h.o.nets)
	if err != nil {
		return err
	}
	t := &tcp{harness: h, prefix: h.o.namespaces}
	if t.worlds, err = numbers("-world", h.o.worlds); err != nil {
		return err
	}
	runs := &hostRuns{tcp: t, alone: map[string]float64{}}
	for _, name := range []string{"gotrain", "hcclrun"} {
		if _, missing := h.build(name, "./cmd/"+name); missing != "" {
			return errors.New(missing)
		}
	}
	if err := t.namespaces(h.ctx, "up"); err != nil {
		return err
	}
	defer t.namespaces(context.Background(), "down")
	settings, err := runs.settings()
	if err != nil {
		return err
	}
	for _, n := range nets {
		if n.rate == 0 {
			return fmt.Errorf("-net %q: hosts needs a rate, such as 1gbit", n.name)
		}
		if err := t.namespaces(h.ctx, "rate", n.name); err != nil {
			return err
		}
		for _, s := range settings {
			if err := runs.race(n, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostRuns trains between namespaces.
type hostRuns struct {
	*tcp
	alone map[string]float64 // step of one rank in milliseconds, by model and type
}

// settings are ResNet-50 and the Llamas of -shape, with each number of ranks.
func (h *hostRuns) settings() (out []setting, err error) {
	for d := range strings.SplitSeq(h.o.dtypes, ",") {
		for _, m := range strings.Split(h.o.shapes, ",") {
			for _, w := range h.worlds {
				s := setting{World: w, Threads: 1, Warm: h.o.warm, Steps: h.o.steps, DType: d, Batch: 16}
				if m != "resnet50" {
					s.Model, s.Seq, s.Batch = m, 256, 8
				}
				if h.o.batch != "" {
					if s.Batch, err = strconv.Atoi(h.o.batch); err != nil {
						return nil, fmt.Errorf("-batch %q: one number", h.o.batch)
					}
				}
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// race lets all contestants train in turn, and prints medians over the rounds.
func (h *hostRuns) race(n network, s setting) error {
	field := []trainer{h.gotrain("none"), h.gotrain("bf16"), h.gotrain("int8")}
	if missing := torchMissing(); missing == "" {
		field = append(field, h.pytorch("none"), h.pytorch("fp16"))
	} else {
		fmt.Fprintf(h.out, "PyTorch does not take part: %s\n", missing)
	}
	single, err := h.single(s)
	if err != nil {
		return fmt.Errorf("one rank alone: %w", err)
	}
	runs := map[string][]timing{}
	for round := range h.o.rounds {
		for _, c := range field {
			ctx, cancel := context.WithTimeout(h.ctx, h.o.timeout)
			got, err := c.run(ctx, n, s)
			cancel()
			if h.ctx.Err() != nil {
				return h.ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(h.out, "%s on %s, %s, round %d failed: %v\n", c.name, n.name, s.label(), round+1, err)
				continue
			}
			fmt.Fprintf(h.progress, "%s, %d hosts at %s, round %d, %s: %.0f ms a step, %.0f ms exposed\n",
				s.label(), s.World, n.name, round+1, c.name, got.step, got.exposed)
			runs[c.name] = append(runs[c.name], got)
		}
	}
	h.print(n, s, single, field, runs)
	return nil
}

// print shows the medians of a setting.
func (h *hostRuns) print(n network, s setting, single float64, field []trainer, runs map[string][]timing) {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s, %d hosts at %s\tstep ms\texposed ms\tideal wire\tplan: step\tplan: exposed\tof measured\tspeed of one rank\tothers\t\n",
		s.label(), s.World, n.name)
	for _, c := range field {
		rs := runs[c.name]
		if len(rs) == 0 {
			fmt.Fprintf(w, "%s\t-\t\t\t\t\t\t\t\t\n", c.name)
			continue
		}
		pick := func(f func(timing) float64) float64 {
			var v []float64
			for _, r := range rs {
				v = append(v, f(r))
			}
			return median(v)
		}
		step := pick(func(r timing) float64 { return r.step })
		forecast := pick(func(r timing) float64 { return r.forecast })
		ratio := 0.0
		if forecast > 0 {
			ratio = 100 * forecast / step
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%s\t%s\t%s\t%s\t%.0f %%\t%.0f %%\t\n", c.name, step, pick(func(r timing) float64 { return r.exposed }),
			known(pick(func(r timing) float64 { return r.bound }), "%.1f"), known(forecast, "%.1f"), known(pick(func(r timing) float64 { return r.hidden }), "%.1f"),
			known(ratio, "%.0f %%"), 100*single/step, pick(func(r timing) float64 { return r.disturbed }))
	}
	w.Flush()
	fmt.Fprintf(h.out, "medians of %d rounds; one rank alone takes %.1f ms a step; exposed of PyTorch: its step less that of ranks that do not reduce\n",
		h.o.rounds, single)
}

// single is the step of gotrain with one rank on this machine.
func (h *hostRuns) single(s setting) (float64, error) {
	s.World = 1
	key := s.label()
	if h.alone[key] > 0 {
		return h.alone[key], nil
	}
	var steps []float64
	for range h.o.rounds {
		dir, err := os.MkdirTemp(h.scratch, "alone-")
		if err != nil {
			return 0, err
		}
		args, err := h.command(dir, s, "none")
		if err != nil {
			return 0, err
		}
		r, err := execute(h.ctx, []string{"GOTRAIN_THREADS=1"}, "taskset", append([]string{"-c", "0"}, args...)...)
		if err != nil {
			return 0, err
		}
		metrics, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
		if err != nil {
			return 0, err
		}
		res, err := parseGotrain(metrics, s, r.began)
		if err != nil {
			return 0, err
		}
		steps = append(steps, res.stepMS)
	}
	h.alone[key] = median(steps)
	return h.alone[key], nil
}

// command is the command line of a rank that trains in folder dir.
func (h *hostRuns) command(dir string, s setting, codec string) ([]string, error) {
	template := gotrainCommand
	if s.Model != "" {
		template = recipeCommand
		if err := writeRecipe(dir, s); err != nil {
			return nil, err
		}
	}
	args := fill(template, filepath.Join(h.scratch, "gotrain"), dir, s)
	return append(args, "--set", "comm.compress="+codec, "--set", "comm.compress_warmup_steps=0"), nil
}

// gotrain trains with hcclrun, a rank in each namespace.
func (h *hostRuns) gotrain(codec string) trainer {
	return trainer{name: "gotrain " + codec, run: func(ctx context.Context, n network, s setting) (timing, error) {
		dir, err := os.MkdirTemp(h.scratch, "hosts-")
		if err != nil {
			return timing{}, err
		}
		defer os.RemoveAll(dir)
		rank, err := h.command(dir, s, codec)
		if err != nil {
			return timing{}, err
		}
		var names []string
		for r := range s.World {
			names = append(names, h.prefix+strconv.Itoa(r)+":1")
		}
		args := []string{"--rsh", "ip netns exec", "-H", strings.Join(names, ","), "--master_addr", n.address(0), "-x", "GOTRAIN_THREADS=" + strconv.Itoa(s.Threads)}
		r, err := execute(ctx, nil, filepath.Join(h.scratch, "hcclrun"), append(args, rank...)...)
		if err != nil {
			return timing{}, err
		}
		path := filepath.Join(dir, "metrics.jsonl")
		out, err := timesOf(path, s)
		if err != nil {
			return out, err
		}
		out.disturbed = r.disturbed
		return out, h.forecast(ctx, path, rank, n, s, &out)
	}}
}

// timesOf reads the times of the measured steps.
func timesOf(path string, s setting) (out timing, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return out, err
	}
	var steps, waits []float64
	seen := 0
	for line := range strings.Lines(string(text)) {
		var e struct {
			Event string
			Took  float64 `json:"step_time"`
			Wait  float64 `json:"wait_time"`
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Event == "step" {
			if seen++; seen > s.Warm {
				steps, waits = append(steps, e.Took*1e3), append(waits, e.Wait*1e3)
			}
		}
	}
	if len(steps) == 0 {
		return out, fmt.Errorf("%d steps, and %d are for warming up", seen, s.Warm)
	}
	out.step, out.exposed = median(steps), median(waits)
	return out, nil
}

// forecast asks gotrain plan about the run, with the kernel times that the run has measured.
func (h *hostRuns) forecast(ctx context.Context, metrics string, rank []string, n network, s setting, out *timing) error {
	args := slices.Clone(rank[1:])
	args[0] = "plan"
	world := strconv.Itoa(s.World)
	args = append(args, "--ranks", world, "--nodes", world, "--link", n.name+",50us", "--measured", metrics, "--json")
	r, err := execute(ctx, nil, rank[0], args...)
	if err != nil {
		return fmt.Errorf("predicting: %w", err)
	}
	var plan struct {
		Network struct {
			Result struct {
				Step    float64 `json:"step_ns"`
				Exposed float64 `json:"exposed_ns"`
			}
			Bound float64 `json:"bound_ns"`
		}
	}
	if err := json.Unmarshal(r.stdout, &plan); err != nil {
		return fmt.Errorf("predicting: %w", err)
	}
	out.forecast, out.hidden, out.bound = plan.Network.Result.Step/1e6, plan.Network.Result.Exposed/1e6, plan.Network.Bound/1e6
	return nil
}

// pytorch trains with DDP over gloo; hook "fp16" compresses.
func (h *hostRuns) pytorch(hook string) trainer {
	return trainer{name: "pytorch " + hook, run: func(ctx context.Context, n network, s setting) (timing, error) {
		script, more := "resnet_torch.py", []string(nil)
		if s.Model != "" {
			script, more = "llama_torch.py", []string{"--shape", s.Model, "--seq", strconv.Itoa(s.Seq)}
		}
		env := []string{"BENCH_NAMESPACES=" + h.namesOf(s.World), "BENCH_MASTER=" + n.address(0)}
		one := func(extra ...string) (float64, float64, error) {
			args := append([]string{h.peer(script), "--world", strconv.Itoa(s.World), "--threads", strconv.Itoa(s.Threads), "--batch", strconv.Itoa(s.Batch),
				"--dtype", s.DType, "--warm", strconv.Itoa(s.Warm), "--steps", strconv.Itoa(s.Steps)}, append(more, extra...)...)
			r, err := execute(ctx, env, python(), args...)
			if err != nil {
				return 0, 0, err
			}
			var line struct {
				Step float64 `json:"step_ms"`
			}
			if err := json.Unmarshal([]byte(tail(string(r.stdout), 1)), &line); err != nil || line.Step == 0 {
				return 0, 0, fmt.Errorf("%s prints %q", script, tail(string(r.stdout), 1))
			}
			return line.Step, r.disturbed, nil
		}
		step, disturbed, err := one("--hook", hook)
		if err != nil {
			return timing{}, err
		}
		apart, _, err := one("--hook", "off")
		return timing{step: step, exposed: max(0, step-apart), disturbed: disturbed}, err
	}}
}
