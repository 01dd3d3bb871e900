// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
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

// reducer all-reduces float32 in place over a range of sizes and tells microseconds by size in bytes.
type reducer struct {
	name    string
	missing string
	run     func(ctx context.Context, world int) (map[int]float64, error)
}

// allreduce measures all contestants for each number of ranks and prints a table for each.
func (h *harness) allreduce(worlds []int) error {
	var field []reducer
	for _, r := range []reducer{h.shm(), h.gloo(), h.openmpi(), h.floor()} {
		if r.missing != "" {
			fmt.Fprintf(h.out, "%s does not take part: %s\n", r.name, r.missing)
			continue
		}
		field = append(field, r)
	}
	for _, world := range worlds {
		all := map[string]map[int][]float64{}
		for round := range h.o.rounds {
			for _, r := range field {
				ctx, cancel := context.WithTimeout(h.ctx, h.o.timeout)
				got, err := r.run(ctx, world)
				cancel()
				if h.ctx.Err() != nil {
					return h.ctx.Err()
				}
				if err != nil {
					fmt.Fprintf(h.out, "%s, %d ranks, round %d failed: %v\n", r.name, world, round+1, err)
					continue
				}
				fmt.Fprintf(h.progress, "all-reduce, %d ranks, round %d, %s done\n", world, round+1, r.name)
				if all[r.name] == nil {
					all[r.name] = map[int][]float64{}
				}
				for n, us := range got {
					all[r.name][n] = append(all[r.name][n], us)
				}
			}
		}
		printReduce(h.out, world, field, all)
	}
	return nil
}

// printReduce shows microseconds (medians over rounds) and how many times faster the first contestant is.
func printReduce(out io.Writer, world int, field []reducer, all map[string]map[int][]float64) {
	sizes := map[int]bool{}
	for _, m := range all {
		for n := range m {
			sizes[n] = true
		}
	}
	if len(sizes) == 0 {
		fmt.Fprintf(out, "no all-reduce of %d ranks was measured\n", world)
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "all-reduce f32, %d ranks\t", world)
	for _, r := range field {
		fmt.Fprintf(w, "%s µs\tGB/s\t", r.name)
	}
	for _, r := range field[1:] {
		fmt.Fprintf(w, "vs %s\t", r.name)
	}
	fmt.Fprintln(w)
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintf(w, "%s\t", bytesName(n))
		for _, r := range field {
			if v := all[r.name][n]; len(v) > 0 {
				fmt.Fprintf(w, "%.1f\t%.2f\t", median(v), float64(n)/median(v)/1e3)
			} else {
				fmt.Fprint(w, "-\t-\t")
			}
		}
		for _, r := range field[1:] {
			mine, its := all[field[0].name][n], all[r.name][n]
			if len(mine) > 0 && len(its) > 0 {
				fmt.Fprintf(w, "%.2fx\t", median(its)/median(mine))
			} else {
				fmt.Fprint(w, "\t")
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(out, "GB/s = bytes / time; vs = times faster than that one\n")
}

func bytesName(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// shm is gotrain's own transport, by gotrain bench.
func (h *harness) shm() reducer {
	bin, missing := h.build("gotrain", "./cmd/gotrain")
	return reducer{name: "gotrain", missing: missing, run: func(ctx context.Context, world int) (map[int]float64, error) {
		return linesOf(execute(ctx, nil, bin, "bench", "allreduce", "--json", "--ranks", strconv.Itoa(world)))
	}}
}

// gloo is PyTorch's transport on the CPU.
func (h *harness) gloo() reducer {
	return reducer{name: "gloo", missing: torchMissing(), run: func(ctx context.Context, world int) (map[int]float64, error) {
		return linesOf(execute(ctx, nil, python(), h.peer("allreduce_gloo.py"), "--world", strconv.Itoa(world)))
	}}
}

// openmpi is whatever mpicc and mpirun belong to. Memory is kept by malloc, as in the peer of the steps: without it large all-reduces are ten times slower.
func (h *harness) openmpi() reducer {
	r := reducer{name: "openmpi"}
	bin := filepath.Join(h.scratch, "mpi_allreduce")
	if out, err := exec.CommandContext(h.ctx, "mpicc", "-O2", h.peer("mpi_allreduce.c"), "-o", bin).CombinedOutput(); err != nil {
		r.missing = fmt.Sprintf("mpicc: %v %s\nhint: apt-get install openmpi-bin libopenmpi-dev", err, tail(string(out), 2))
		return r
	}
	r.run = func(ctx context.Context, world int) (map[int]float64, error) {
		env := []string{"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=100000000000", "MALLOC_TOP_PAD_=536870912"}
		args := []string{"--bind-to", "core", "-np", strconv.Itoa(world), bin}
		if world > cpus() {
			args = []string{"--oversubscribe", "-np", strconv.Itoa(world), bin}
		}
		if os.Geteuid() == 0 {
			args = append([]string{"--allow-run-as-root"}, args...)
		}
		return linesOf(execute(ctx, env, "mpirun", args...))
	}
	return r
}

// linesOf reads JSON lines with bytes and us.
func linesOf(r ran, err error) (map[int]float64, error) {
	if err != nil {
		return nil, err
	}
	got := map[int]float64{}
	for line := range strings.Lines(string(r.stdout)) {
		var j struct {
			Bytes int
			US    float64
		}
		if json.Unmarshal([]byte(line), &j) == nil && j.Bytes > 0 && j.US > 0 {
			got[j.Bytes] = j.US
		}
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("its output has no results: %q", tail(string(r.stdout), 3))
	}
	return got, nil
}

var floorLine = regexp.MustCompile(`(?m)^shm allreduce P=(\d+) +(\d+) B +([\d.]+) us`)

// floor is what plain loads and stores in shared memory reach.
func (h *harness) floor() reducer {
	r := reducer{name: "floor"}
	path := os.Getenv("BENCH_FLOOR")
	if path == "" {
		r.missing = "BENCH_FLOOR names no program\nhint: it is optional; see bench/README.md"
		return r
	}
	r.run = func(ctx context.Context, world int) (map[int]float64, error) {
		out, err := execute(ctx, nil, path)
		if err != nil {
			return nil, err
		}
		return parseFloor(out.stdout, world), nil
	}
	return r
}

func parseFloor(out []byte, world int) map[int]float64 {
	got := map[int]float64{}
	for _, m := range floorLine.FindAllSubmatch(out, -1) {
		if p, _ := strconv.Atoi(string(m[1])); p == world {
			n, _ := strconv.Atoi(string(m[2]))
			got[n], _ = strconv.ParseFloat(string(m[3]), 64)
		}
	}
	return got
}
