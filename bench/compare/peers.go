// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// pytorch is a program of bench/peer, which sets its own environment for speed, run as it is and with torch.compile: one family. more are the arguments that
// it takes beside the usual ones. What is compiled stays in a cache of the user's, and warm-up steps hide the rest, so compiling is never measured.
func (h *harness) pytorch(script string, more func(s setting) []string) []contestant {
	missing := torchMissing()
	compiled := missing
	if compiled == "" {
		compiled = compilerMissing()
	}
	arguments := func(extra ...string) func(s setting) []string {
		return func(s setting) []string {
			if more != nil {
				return append(more(s), extra...)
			}
			return extra
		}
	}
	return []contestant{
		h.program("pytorch", "pytorch", missing, python(), script, nil, arguments()),
		h.program("pytorch compiled", "pytorch", compiled, python(), script, nil, arguments("--compile")),
	}
}

// jax is bench/peer/jax_step.py: one process, so it takes part where there is one rank.
func (h *harness) jax(shape func(s setting) string) contestant {
	bin := os.Getenv("BENCH_JAX")
	missing := "BENCH_JAX is not set\nhint: it is optional: a Python with jax (pip install jax)"
	if bin != "" {
		missing = importMissing(bin, "jax", "pip install jax; name the interpreter in BENCH_JAX")
	}
	more := func(s setting) []string {
		args := []string{"--shape", shape(s)}
		if s.Seq > 0 {
			args = append(args, "--seq", strconv.Itoa(s.Seq))
		}
		return args
	}
	return h.program("jax", "", missing, bin, "jax_step.py", func(s setting) bool { return s.World == 1 }, more)
}

// program is a peer's script of bench/peer that prints a line of JSON.
func (h *harness) program(
	name, family, missing, interpreter, script string, fits func(s setting) bool, more func(s setting) []string,
) contestant {
	run := func(ctx context.Context, s setting) (result, error) {
		args := []string{h.peer(script), "--world", strconv.Itoa(s.World), "--threads", strconv.Itoa(s.Threads),
			"--batch", strconv.Itoa(s.Batch), "--dtype", s.DType, "--warm", strconv.Itoa(s.Warm), "--steps", strconv.Itoa(s.Steps)}
		r, err := execute(ctx, nil, interpreter, append(args, more(s)...)...)
		if err != nil {
			return result{}, err
		}
		return parseTorch(r)
	}
	return contestant{name: name, family: family, missing: missing, fits: fits, run: run}
}

// torchMissing says why there is no PyTorch; "" if there is.
func torchMissing() string {
	return importMissing(python(), "torch", "pip install torch, or apt-get install python3-torch; name the interpreter in BENCH_PYTHON")
}

// importMissing says why a Python has no such module; "" if it has.
func importMissing(interpreter, module, hint string) string {
	out, err := exec.Command(interpreter, "-c", "import "+module).CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s cannot import %s (%s)\nhint: %s", interpreter, module, tail(string(out), 1), hint)
}

// compilerMissing says why torch.compile cannot work: on processors it writes C++.
func compilerMissing() string {
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "g++"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		return fmt.Sprintf("torch.compile needs a C++ compiler (%v)\nhint: apt-get install g++, or name one in CXX", err)
	}
	return ""
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
		ImgBest float64 `json:"img_s_best"`
		TokS    float64 `json:"tok_s"`
		TokBest float64 `json:"tok_s_best"`
		StepMS  float64 `json:"step_ms"`
		RSS     float64 `json:"rss_mb"`
		First   float64 `json:"first_step_s"`
	}
	if err := json.Unmarshal([]byte(tail(string(r.stdout), 1)), &j); err != nil || max(j.ImgS, j.TokS) <= 0 {
		return result{}, fmt.Errorf("its last line is not the expected JSON: %q", tail(string(r.stdout), 1))
	}
	return result{
		rate:      max(j.ImgS, j.TokS),
		best:      max(j.ImgBest, j.TokBest),
		stepMS:    j.StepMS,
		rssMB:     j.RSS,
		pssMB:     r.pssMB,
		firstS:    j.First,
		disturbed: r.disturbed,
		version:   j.Version,
	}, nil
}
