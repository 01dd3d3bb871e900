package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// What eval says of samples, classes and confusion agrees with its totals, with one rank and with two; files hold what the terminal shows.
func TestEvalOfSamples(t *testing.T) {
	run, _ := greyRun(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var first string
	for _, ranks := range []string{"1", "2"} {
		cmd := program(t, "eval", run, "-n", ranks, "--json", "--classes", "--worst", "2", "--confusion", "-", "--confusion", at("m.csv"), "--confusion", at("m.png"),
			"--predictions", at("p.csv"))
		raw, err := cmd.Output()
		var v struct {
			Loss, Top1, Items float64
			Classes           []struct {
				Class            string
				Samples, Correct int
			}
			Confusion [][]int
			Worst     []judged
		}
		if err != nil || json.Unmarshal(raw, &v) != nil || v.Items != 6 || len(v.Classes) != 3 || len(v.Worst) != 2 {
			t.Fatalf("%v\n%s", err, raw)
		}
		f, err := os.Open(at("p.csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(rows) != 7 {
			t.Fatal(rows, err)
		}
		loss, most, counts := 0.0, 0.0, [3][3]int{}
		for _, r := range rows[1:] {
			l, err := strconv.ParseFloat(r[8], 64)
			if err != nil || !strings.HasSuffix(r[1], ".png") || !strings.Contains(r[1], r[3]) {
				t.Fatal(r, err)
			}
			loss, most = loss+l/6, max(most, l)
			label, _ := strconv.Atoi(r[2])
			predicted, _ := strconv.Atoi(r[4])
			if counts[label][predicted]++; r[7] != strconv.FormatBool(label == predicted) {
				t.Error(r)
			}
		}
		right := 0
		for i, c := range v.Classes {
			right += c.Correct
			if c.Samples != 2 || c.Correct != counts[i][i] {
				t.Errorf("%s: %+v, counted %v", ranks, c, counts)
			}
			for j := range v.Classes {
				if v.Confusion[i][j] != counts[i][j] {
					t.Errorf("%s ranks: matrix %v, counted %v", ranks, v.Confusion, counts)
				}
			}
		}
		if abs(loss-v.Loss) > 1e-5 || abs(float64(right)/6-v.Top1) > 1e-9 || abs(v.Worst[0].Loss-most) > 1e-6 {
			t.Errorf("%s ranks: loss %g and %d right by samples, %g and %g in all; the worst %+v", ranks, loss, right, v.Loss, v.Top1, v.Worst)
		}
		img, err := os.ReadFile(at("m.png"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(bytes.NewReader(img)); err != nil {
			t.Error(err)
		}
		m, err := os.ReadFile(at("m.csv"))
		if err != nil || !strings.HasPrefix(string(m), "true \\ predicted,cat,dog,owl\n") {
			t.Errorf("%s %v", m, err)
		}
		if first == "" {
			first = string(m)
		} else if first != string(m) {
			t.Errorf("with two ranks the matrix is\n%s, with one\n%s", m, first)
		}
	}
	out, errs, code := cli(t, "eval", run, "-n", "1", "--classes", "--confusion", "-", "--worst", "1", "--predictions", at("p.jsonl"), "--top", "2")
	for _, want := range []string{"most often mistaken for\ncat ", "true \\ predicted", "the largest losses\n", ".png"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
	raw, err := os.ReadFile(at("p.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var one judged
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	if len(lines) != 6 || json.Unmarshal(lines[5], &one) != nil || one.Class != "owl" || len(one.Predicted) != 2 {
		t.Errorf("%s", raw)
	}
}

// Only rank 0 writes files, and its machine alone needs their folders.
func TestOnlyTheFirstRankNeedsTheFoldersOfFiles(t *testing.T) {
	f := evalFlags{top: 1, predictions: "/nowhere/p.csv", confusion: []string{"-", "/nowhere/m.png"}}
	if err := f.check(false); err != nil {
		t.Error(err)
	}
	if err := f.check(true); launch.ExitCode(err) != launch.ExitStorage {
		t.Error(err)
	}
	f = evalFlags{top: 1, predictions: filepath.Join(t.TempDir(), "p.csv")}
	if err := os.Mkdir(f.predictions, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.check(true); launch.ExitCode(err) != launch.ExitStorage || !strings.Contains(err.Error(), "it is a folder") {
		t.Error(err)
	}
}

// What cannot be done is said before the work.
func TestEvalFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--confusion m.txt", 64, "ends with .csv or .png"},
		{"--predictions p.parquet", 64, "ends with .csv or .jsonl"},
		{"--worst -1", 64, "--worst -1"},
		{"--confusion /nowhere/m.csv", 74, "there is no folder /nowhere"},
		{"--predictions /proc/p.csv", 74, "/proc/p.csv cannot be written"},
	} {
		if _, errs, code := cli(t, append([]string{"eval", "x"}, strings.Fields(c.args)...)...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, code, errs)
		}
	}
}
