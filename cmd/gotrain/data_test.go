package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/survey"
)

// A folder with a broken picture and a copy in the other split; then a CSV file, a recipe, and what is wrong on the command line.
func TestDataCheckAndStats(t *testing.T) {
	root, err := data.Locate("flowers/val")
	if err != nil {
		t.Fatal(err)
	}
	pictures, _ := filepath.Glob(filepath.Join(root, "*", "*.jpg"))
	dir := t.TempDir()
	var csv strings.Builder
	for i, name := range []string{"train/a/0.jpg", "train/a/1.jpg", "train/b/2.jpg", "val/a/3.jpg", "val/b/2.jpg"} {
		raw, err := os.ReadFile(pictures[[]int{0, 1, 2, 3, 2}[i]])
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			raw = raw[:900]
		}
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		csv.WriteString(name + "," + filepath.Base(filepath.Dir(p)) + "\n")
	}
	out, errs, code := cli(t, "data", "check", dir)
	for _, want := range []string{"train: 3 samples", "2 classes, 1 broken", "1.jpg cannot be read: ",
		"equal, in different splits:", "1 group of equal samples, 1 across"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != launch.ExitNoInput || !strings.Contains(errs, "1 sample cannot be read\nhint: ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	out, _, code = cli(t, "data", "stats", dir, "--json")
	var r survey.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != launch.ExitNoInput || len(r.Sets) != 2 || r.Sets[0].Classes[0].Samples != 2 {
		t.Errorf("exit code %d, %v: %+v", code, err, r)
	}
	list := filepath.Join(dir, "list.csv")
	if err := os.WriteFile(list, []byte(strings.Replace(csv.String(), "train/a/1.jpg,a\n", "", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code = cli(t, "data", "stats", list); code != 0 || !strings.Contains(out, "4 jpeg") || !strings.Contains(out, "mean ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	split := filepath.Join(dir, "split.csv") // val/b/2.jpg is a copy of train/b/2.jpg
	rows := "path,label,set\ntrain/a/0.jpg,a,train\ntrain/b/2.jpg,b,train\nval/b/2.jpg,b,valid\n"
	if err := os.WriteFile(split, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code = cli(t, "data", "check", split); code != 0 || !strings.Contains(out, "train: 2 samples") || !strings.Contains(out, "val: 1 sample,") ||
		!strings.Contains(out, "equal, in different splits:") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code = cli(t, "data", "check", "quickstart"); code != 0 || !strings.Contains(out, "2,000 samples") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	loose, packed := filepath.Join(t.TempDir(), "birds.csv"), filepath.Join(t.TempDir(), "birds.tar.gz")
	for _, name := range []string{loose, packed} {
		if err := os.WriteFile(name, []byte("path,label\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for want, args := range map[string][]string{
		"has no class folders":             {"data", "check", filepath.Join(dir, "train", "a")},
		"is none":                          {"data", "check", dir, "--set", "data.root=x"},
		"shards":                           {"data", "stats", filepath.Join(dir, "x-{0..3}.tar")},
		"gunzip one":                       {"data", "check", packed},
		"nor is there a file or folder":    {"data", "stats", "flowerz"},
		"or name a file: gotrain data sta": {"data", "stats", filepath.Dir(loose)},
		"hint: --set data.kind=imagefolde": {"data", "check", "resnet50", "--set", "data.kind=synthetic"},
	} {
		_, errs, code := cli(t, args...)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
}

// A shard of the held-out split counts once, whichever of its usual names it has.
func TestDataOfShards(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root, err := data.Locate("flowers/val")
	if err != nil {
		t.Fatal(err)
	}
	pictures, _ := filepath.Glob(filepath.Join(root, "*", "*.jpg"))
	dir := filepath.Join(t.TempDir(), "shards [2]")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"train-000.tar", "validation-000.tar"} {
		raw, err := os.ReadFile(pictures[i])
		if err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(out)
		for ext, body := range map[string][]byte{"jpg": raw, "cls": []byte("0")} {
			if err := w.WriteHeader(&tar.Header{Name: "1." + ext, Mode: 0o644, Size: int64(len(body))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(body); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), out.Close()); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, code := cli(t, "data", "stats", dir, "--json")
	var r survey.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Sets) != 2 || r.Sets[1].Name != "val" || len(r.Duplicates) > 0 {
		t.Errorf("exit code %d, %v: %+v\n%s", code, err, r, errs)
	}
}

// A run with every augmentation, stopped and resumed, gives the bits of one that was not stopped.
func TestResumeWithAugmentation(t *testing.T) {
	dir := t.TempDir()
	args := func(out string, more ...string) []string {
		return append([]string{"run", "resnet50", "--ranks", "1", "--set", "run.output_dir=" + filepath.Join(dir, out), "--set", "run.epochs=0",
			"--set", "data.image_size=32", "--set", "data.eval_resize_pixels=36", "--set", "model.depth=18", "--set", "model.width=4",
			"--set", "train.batch_per_rank=24", "--set", "train.conv_algorithm=direct", "--set", "eval.enabled=false", "--set", "schedule.kind=constant",
			"--set", "schedule.warmup_epochs=0", "--set", "data.policy=randaugment", "--set", "data.color_jitter=[0.4,0.4,0.4,0.1]",
			"--set", "data.erasing_probability=0.5", "--set", "data.mixup=0.3", "--set", "data.cutmix=1", "--set", "data.repeats=3"}, more...)
	}
	weights := func(out, step string) string {
		raw, err := os.ReadFile(filepath.Join(dir, out, "checkpoints", step, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for _, c := range []struct{ out, steps string }{{"whole", "18"}, {"parts", "7"}, {"parts", "18"}} {
		if _, errs, code := cli(t, args(c.out, "--set", "run.steps="+c.steps)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", c.out, code, errs)
		}
	}
	if weights("whole", "step-00000018") != weights("parts", "step-00000018") {
		t.Error("the resumed run has other weights")
	}
}
