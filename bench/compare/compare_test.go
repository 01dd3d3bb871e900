// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	o := options{dtypes: "f32,bf16", ranks: "2x1,1x2", shapes: "stories15M,d512", seq: "256,1024", warm: 1, steps: 1, rounds: 1, tokens: 2}
	got, err := o.settings(nil, []int{16}, nil)
	if err != nil || len(got) != 4 || got[3].label() != "bf16 1x2 b16" || got[3].items() != 16 {
		t.Errorf("settings() = %v, %v", got, err)
	}
	got, err = o.llamaSettings()
	if err != nil || len(got) != 2*2*3*4 || got[47].label() != "d512 bf16 1x2 b16 s1024" || got[0].items() != 2*4*256 {
		t.Errorf("llamaSettings() = %v, %v", got, err)
	}
	for _, change := range []func(o *options){
		func(o *options) { o.dtypes = "f16" },
		func(o *options) { o.ranks = "2" },
		func(o *options) { o.ranks = "2x1x" },
		func(o *options) { o.ranks = "0x1" },
		func(o *options) { o.rounds = 0 },
		func(o *options) { o.batch = "4,x" },
		func(o *options) { o.batch = "0" },
		func(o *options) { o.seq = "" },
		func(o *options) { o.shapes = "stories15M,7b" },
		func(o *options) { o.tokens = 1 },
	} {
		bad := o
		change(&bad)
		if _, err := bad.llamaSettings(); err == nil {
			t.Errorf("settings of %+v: no error", bad)
		}
	}
}

func TestParse(t *testing.T) {
	r, err := parseTorch(
		ran{
			stdout: []byte(
				"a warning\n" + `{"version": "2.0", "img_s": 8.5, "img_s_best": 9, "step_ms": 1880, "rss_mb": 2000, "first_step_s": 6.5}` + "\n",
			),
			disturbed: 3,
		},
	)
	if want := (result{rate: 8.5, best: 9, stepMS: 1880, rssMB: 2000, firstS: 6.5, disturbed: 3, version: "2.0"}); err != nil || r != want {
		t.Errorf("parseTorch = %+v, %v; want %+v", r, err, want)
	}
	r, err = parseTorch(ran{stdout: []byte(`{"tok_s": 2048.5, "tok_s_best": 2100, "step_ms": 500}`)})
	if err != nil || r.rate != 2048.5 || r.best != 2100 {
		t.Errorf("parseTorch of tokens = %+v, %v", r, err)
	}
	if _, err := parseTorch(ran{stdout: []byte("Killed\n")}); err == nil || !strings.Contains(err.Error(), "Killed") {
		t.Errorf("parseTorch of no JSON: %v", err)
	}
	r, err = parseMark(
		ran{stdout: []byte("direct resnet50 threads=1 batch=16 f32: 4.34 img/s (best 4.36), step 3684 ms, rss 2015 MB\n  conv 1 ms"), rssMB: 2015},
	)
	if err != nil || r.rate != 4.34 || r.best != 4.36 || r.stepMS != 3684 || r.rssMB != 2015 {
		t.Errorf("parseMark = %+v, %v", r, err)
	}
	r, err = parseMark(
		ran{stdout: []byte("bare llama d512 (58.1M) threads=1 batch=8 seq=256 bf16: 1834 tok/s (best 1850), step 1117 ms, 650 model GFLOP/s\n")},
	)
	if err != nil || r.rate != 1834 || r.best != 1850 || r.stepMS != 1117 {
		t.Errorf("parseMark of tokens = %+v, %v", r, err)
	}
	if _, err := parseMark(ran{stdout: []byte("img/s")}); err == nil {
		t.Error("parseMark of nonsense: no error")
	}
	s := setting{World: 2, Threads: 1, Batch: 16, Warm: 1, Steps: 3}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r, err = parseGotrain([]byte(`{"event":"run_start","time":"2026-01-01T00:00:01Z","version":"v1"}
{"event":"step","time":"2026-01-01T00:00:02.5Z","step":1,"step_time":9}
{"event":"step","step":2,"step_time":2,"npu_util":0.97}
{"event":"step","step":3,"step_time":4,"npu_util":0.9}
{"event":"step","step":4,"step_time":2,"npu_util":0.98}
not json
`), s, began)
	if err != nil || r.rate != 16 || r.best != 16 || r.stepMS != 2000 || r.firstS != 2.5 || r.util != 0.97 || r.version != "v1" {
		t.Errorf("parseGotrain = %+v, %v", r, err)
	}
	if _, err := parseGotrain([]byte(`{"event":"step","step_time":9}`), s, began); err == nil {
		t.Error("parseGotrain of nothing but warm-up: no error")
	}
	floor := parseFloor(
		[]byte(
			"shm flag one-way\nshm allreduce P=2       4096 B        0.5 us     8.00 GB/s (bytes/time)\nshm allreduce P=4       4096 B       88.1 us     0.05 GB/s\n",
		),
		4,
	)
	if len(floor) != 1 || floor[4096] != 88.1 {
		t.Errorf("parseFloor = %v", floor)
	}
}

func TestSummaryLeavesOutDisturbedRuns(t *testing.T) {
	rs := []result{{rate: 10, best: 11}, {rate: 2, best: 3, disturbed: 40}, {rate: 12, best: 12.5}}
	s, ok := summarise(rs, 5)
	if !ok || s.rate != 11 || s.best != 12.5 || s.low != 10 || s.high != 12 || s.spoiled || s.runs != 2 {
		t.Errorf("summarise = %+v", s)
	}
	if s, _ := summarise(rs[1:2], 5); !s.spoiled || s.rate != 2 {
		t.Errorf("summarise of one disturbed run = %+v, want it used and marked", s)
	}
	if _, ok := summarise(nil, 5); ok {
		t.Error("summarise of nothing: ok")
	}
}

// TestTheFasterOfAFamilyCounts: the star is on the faster way to run a peer, in each setting, and on nobody who is alone.
func TestTheFasterOfAFamilyCounts(t *testing.T) {
	field := []contestant{{name: "gotrain"}, {name: "pytorch", family: "p"}, {name: "pytorch compiled", family: "p"}, {name: "jax"}}
	tab := newTable("net", "img/s", field)
	one, two := setting{World: 1, Threads: 1, DType: "f32"}, setting{World: 2, Threads: 1, DType: "f32"}
	for s, rates := range map[setting][]float64{one: {12, 8, 6, 3}, two: {12, 8, 10}} {
		for i, r := range rates {
			tab.add(s, field[i].name, result{rate: r, stepMS: 1})
		}
	}
	var out bytes.Buffer
	tab.print(&out, 5)
	stars := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasSuffix(strings.TrimSpace(line), "x *") {
			stars++
			eager := strings.Contains(line, "1x1") && strings.Contains(line, "1.50x *")
			compiled := strings.Contains(line, "2x1") && strings.Contains(line, "pytorch compiled") && strings.Contains(line, "1.20x *")
			if !eager && !compiled {
				t.Errorf("starred: %s", line)
			}
		}
	}
	if stars != 2 {
		t.Errorf("%d stars, want 2:\n%s", stars, out.String())
	}
}

// TestPeersWidestInstructions: a peer gets AVX-512 only where the processor has it, whatever the shell exports.
func TestPeersWidestInstructions(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	const wide = "fma avx2 avx512f avx512dq avx512bw avx512vl"
	for _, c := range []struct{ flags, exported, torch, want string }{
		{"fma avx2", "avx512", "2.15.0", "avx2"}, // would crash
		{"fma avx2", "avx512", "1.13.1", "avx2"},
		{"fma avx2", "", "1.13.1", "avx2"},
		{"fma avx2", "", "2.15.0", "None"}, // 2.x finds out by itself
		{"sse2", "avx512", "1.13.1", "default"},
		{wide, "avx2", "2.15.0", "avx2"}, // the user's own choice
		{wide, "", "1.13.1", "avx512"},
		{wide, "avx512_vnni", "2.15.0", "avx512_vnni"},
		{"", "avx512", "1.13.1", "None"}, // not known what it has
	} {
		info := filepath.Join(t.TempDir(), "cpuinfo")
		text := "processor : 0\nflags : fpu " + c.flags + "\n"
		if c.flags == "" {
			text = "processor : 0\nFeatures : neon\n"
		}
		if err := os.WriteFile(info, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-c", "import ranks, sys; print(ranks.aten(*sys.argv[1:]))", c.exported, c.torch, info)
		cmd.Dir = filepath.Join("..", "peer")
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("aten(%q) of torch %s on %q = %q, %v; want %q", c.exported, c.torch, c.flags, got, err, c.want)
		}
	}
}

// script writes a shell script in place of a program.
func script(t *testing.T, dir, name, body string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWhole runs the harness with scripts in the place of every contestant but one, which is missing.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	mine := script(t, dir, "gotrain", `echo "$@" > `+dir+`/args
for s in 5 2 2 2; do echo '{"event":"step","step_time":'$s'}'; done > "$1/metrics.jsonl"`)
	t.Setenv("BENCH_MARK", script(t, dir, "mark", `echo "bare: 3.00 img/s (best 3.10), step 5300 ms"`))
	t.Setenv("BENCH_PYTHON", filepath.Join(dir, "no-python"))
	var out, progress bytes.Buffer
	err := run(
		context.Background(),
		[]string{"-what", "step", "-dtype", "f32", "-ranks", "2x1", "-warm", "1", "-steps", "3", "-rounds", "2", "-batch", "16",
			"-gotrain", mine + " {dir} {world} {threads} {batch} {dtype} {steps}"},
		&out,
		&progress,
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pytorch does not take part", "BENCH_PYTHON", "gotrain", "16.00", "C reference", "6.00", "2.67x"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if args, _ := os.ReadFile(dir + "/args"); !strings.HasSuffix(strings.TrimSpace(string(args)), "2 1 16 f32 4") {
		t.Errorf("gotrain was called with %q", args)
	}
}

// TestWholeLlama: a program of the user's own, a mark for one length of sequence only, two copies of which count as one.
func TestWholeLlama(t *testing.T) {
	dir := t.TempDir()
	mine := script(t, dir, "gotrain", `for s in 5 2 2; do echo '{"event":"step","npu_util":0.995,"step_time":'$s'}'; done`)
	t.Setenv("BENCH_MARK_LLAMA", script(t, dir, "mark", `echo "$@ $OMP_NUM_THREADS" >> `+dir+`/args; echo "bare: 1000 tok/s (best 1100), step 2000 ms"`))
	t.Setenv("BENCH_PYTHON", filepath.Join(dir, "no-python"))
	var out, progress bytes.Buffer
	err := run(
		context.Background(),
		[]string{"-what", "llama", "-dtype", "bf16", "-ranks", "2x1", "-warm", "1", "-steps", "2", "-rounds", "1", "-batch", "8",
			"-seq", "256,512", "-shape", "d512", "-bench", filepath.Join(dir, "bench"), "-gotrain", mine + " {dir} {shape} {seq}"},
		&out,
		&progress,
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pytorch does not take part", "kernels does not take part", "d512 bf16 2x1 b8 s256", "d512 bf16 2x1 b8 s512", "2048",
		"4096", "2000", "1.02x", "99.5%"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if args, _ := os.ReadFile(dir + "/args"); string(args) != "d512 8 bf16 2 1\nd512 8 bf16 2 1\n" {
		t.Errorf("the C reference was called with %q", args)
	}
}

func TestExecute(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	t0 := time.Now()
	if _, err := execute(ctx, nil, "sh", "-c", "sleep 30 & sleep 30"); err == nil || time.Since(t0) > 5*time.Second {
		t.Errorf("a program beyond its time: %v after %v", err, time.Since(t0))
	}
	if _, err := execute(context.Background(), nil, "sh", "-c", "echo why >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("a failing program: %v, want its last words", err)
	}
}
