// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	o := options{dtypes: "f32,bf16", ranks: "2x1,1x2", batch: 16, warm: 1, steps: 1, rounds: 1}
	got, err := o.settings()
	if err != nil || len(got) != 4 || got[3].String() != "bf16 1x2" {
		t.Errorf("settings() = %v, %v", got, err)
	}
	for _, bad := range []options{
		{dtypes: "f16", ranks: "1x1", batch: 1, warm: 1, steps: 1, rounds: 1},
		{dtypes: "f32", ranks: "2", batch: 1, warm: 1, steps: 1, rounds: 1},
		{dtypes: "f32", ranks: "2x1x", batch: 1, warm: 1, steps: 1, rounds: 1},
		{dtypes: "f32", ranks: "0x1", batch: 1, warm: 1, steps: 1, rounds: 1},
		{dtypes: "f32", ranks: "1x1", batch: 1, warm: 1, steps: 1},
	} {
		if _, err := bad.settings(); err == nil {
			t.Errorf("settings of %+v: no error", bad)
		}
	}
}

func TestParse(t *testing.T) {
	r, err := parseTorch(ran{stdout: []byte("a warning\n" + `{"version": "2.0", "img_s": 8.5, "img_s_best": 9, "step_ms": 1880, "rss_mb": 2000, "first_step_s": 6.5}` + "\n"), disturbed: 3})
	if want := (result{8.5, 9, 1880, 2000, 6.5, 3, "2.0"}); err != nil || r != want {
		t.Errorf("parseTorch = %+v, %v; want %+v", r, err, want)
	}
	if _, err := parseTorch(ran{stdout: []byte("Killed\n")}); err == nil || !strings.Contains(err.Error(), "Killed") {
		t.Errorf("parseTorch of no JSON: %v", err)
	}
	r, err = parseMark(ran{stdout: []byte("direct resnet50 threads=1 batch=16 f32: 4.34 img/s (best 4.36), step 3684 ms, rss 2015 MB\n  conv 1 ms"), rssMB: 2015})
	if err != nil || r.imgS != 4.34 || r.best != 4.36 || r.stepMS != 3684 || r.rssMB != 2015 {
		t.Errorf("parseMark = %+v, %v", r, err)
	}
	if _, err := parseMark(ran{stdout: []byte("img/s")}); err == nil {
		t.Error("parseMark of nonsense: no error")
	}
	s := setting{World: 2, Threads: 1, Batch: 16, Warm: 1, Steps: 3}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r, err = parseGotrain([]byte(`{"event":"run_start","time":"2026-01-01T00:00:01Z","version":"v1"}
{"event":"step","time":"2026-01-01T00:00:02.5Z","step":1,"step_time":9}
{"event":"step","step":2,"step_time":2}
{"event":"step","step":3,"step_time":4}
{"event":"step","step":4,"step_time":2}
not json
`), s, began)
	if err != nil || r.imgS != 16 || r.best != 16 || r.stepMS != 2000 || r.firstS != 2.5 || r.version != "v1" {
		t.Errorf("parseGotrain = %+v, %v", r, err)
	}
	if _, err := parseGotrain([]byte(`{"event":"step","step_time":9}`), s, began); err == nil {
		t.Error("parseGotrain of nothing but warm-up: no error")
	}
	floor := parseFloor([]byte("shm flag one-way\nshm allreduce P=2       4096 B        0.5 us     8.00 GB/s (bytes/time)\nshm allreduce P=4       4096 B       88.1 us     0.05 GB/s\n"), 4)
	if len(floor) != 1 || floor[4096] != 88.1 {
		t.Errorf("parseFloor = %v", floor)
	}
}

func TestSummaryLeavesOutDisturbedRuns(t *testing.T) {
	rs := []result{{imgS: 10, best: 11}, {imgS: 2, best: 3, disturbed: 40}, {imgS: 12, best: 12.5}}
	s, ok := summarise(rs, 5)
	if !ok || s.imgS != 11 || s.best != 12.5 || s.low != 10 || s.high != 12 || s.spoiled || s.runs != 2 {
		t.Errorf("summarise = %+v", s)
	}
	if s, _ := summarise(rs[1:2], 5); !s.spoiled || s.imgS != 2 {
		t.Errorf("summarise of one disturbed run = %+v, want it used and marked", s)
	}
	if _, ok := summarise(nil, 5); ok {
		t.Error("summarise of nothing: ok")
	}
}

// TestWhole runs the harness with scripts in the place of every contestant but one, which is missing.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	script := func(name, body string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	mine := script("gotrain", `echo "$@" > `+dir+`/args
for s in 5 2 2 2; do echo '{"event":"step","step_time":'$s'}'; done > "$1/metrics.jsonl"`)
	t.Setenv("BENCH_MARK", script("mark", `echo "bare: 3.00 img/s (best 3.10), step 5300 ms"`))
	t.Setenv("BENCH_PYTHON", filepath.Join(dir, "no-python"))
	var out, progress bytes.Buffer
	err := run(context.Background(), []string{"-what", "step", "-dtype", "f32", "-ranks", "2x1", "-warm", "1", "-steps", "3", "-rounds", "2", "-batch", "16",
		"-gotrain", mine + " {dir} {world} {threads} {batch} {dtype} {steps}"}, &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pytorch does not take part", "BENCH_PYTHON", "gotrain", "16.00", "mark", "6.00", "2.67x"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if args, _ := os.ReadFile(dir + "/args"); !strings.HasSuffix(strings.TrimSpace(string(args)), "2 1 16 f32 4") {
		t.Errorf("gotrain was called with %q", args)
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
