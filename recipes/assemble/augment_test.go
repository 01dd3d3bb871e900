package assemble

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// Every key of augmentation changes what training loads, is shown by a plan, and changes nothing for evaluation.
func TestAugmentationKeys(t *testing.T) {
	load := func(src data.Source, i int) []byte {
		t.Helper()
		dst := make([][]byte, len(src.Fields()))
		for k, f := range src.Fields() {
			dst[k] = make([]byte, f.Bytes())
		}
		r := data.SampleRand(1, 0, i)
		if err := src.Load(context.Background(), &r, i, dst); err != nil {
			t.Fatal(err)
		}
		return dst[0]
	}
	// The random stream is the same in all, so that only the key makes a difference.
	base := []string{"data.image_size=40", "data.augment=none"}
	train, eval, err := Data(t.Context(), recipe(t, "resnet50", base...), rank(1))
	if err != nil {
		t.Fatal(err)
	}
	for set, words := range map[string]string{
		"data.policy=randaugment":                "RandAugment, 2 operations of magnitude 9 ± 0.5, each with probability 0.5",
		"data.policy=trivialaugment":             "TrivialAugment",
		"data.color_jitter=[0.4,0.4,0.4,0.1]":    "colour jitter 0.4 0.4 0.4 0.1",
		"data.erasing_probability=0.9":           "random erasing 0.9 with noise",
		"data.mixup=0.3":                         "mixup 0.3",
		"data.repeats=3":                         "each sample three times an epoch",
		"data.balanced=true":                     "classes equally often",
		"data.cutmix=1 data.mix_probability=0.5": "cutmix 1 with probability 0.5",
	} {
		r := recipe(t, "resnet50", append(slices.Clone(base), strings.Fields(set)...)...)
		if got := Augmentation(r); got != words {
			t.Errorf("%s is shown as %q, want %q", set, got, words)
		}
		a, b, err := Data(t.Context(), r, rank(1))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(load(b, 0), load(eval, 0)) {
			t.Errorf("%s changes evaluation", set)
		}
		changed := 0
		for i := range 12 {
			if !slices.Equal(load(a, i), load(train, i)) {
				changed++
			}
		}
		if pixels := strings.Contains(set, "policy") || strings.Contains(set, "jitter") || strings.Contains(set, "erasing"); pixels != (changed > 2) {
			t.Errorf("%s changes %d of 12 pictures", set, changed)
		}
	}
	if got := Augmentation(recipe(t, "resnet50")); got != "" {
		t.Errorf("without keys: %q", got)
	}
}

// A CSV file with a split column, one with a held-out part, and tar shards give the samples of the folder they were made from.
func TestOtherLayouts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root, err := data.Locate("flowers")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "flowers [v2] {a,b}*")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var csv strings.Builder
	csv.WriteString("file,label,split\n")
	count := map[string]int{}
	for _, split := range []string{"train", "val"} {
		out, err := os.Create(filepath.Join(dir, split+"-000.tar"))
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(out)
		files, _ := filepath.Glob(filepath.Join(root, split, "*", "*.jpg"))
		for i, f := range files {
			class := filepath.Base(filepath.Dir(f))
			fmt.Fprintf(&csv, "%s,%s,%s\n", f, class, split)
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for ext, body := range map[string][]byte{"jpg": raw, "cls": []byte(class)} {
				if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%06d.%s", i, ext), Mode: 0o644, Size: int64(len(body))}); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(body); err != nil {
					t.Fatal(err)
				}
			}
			count[split]++
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out.Close()
	}
	if err := os.WriteFile(filepath.Join(dir, "all.csv"), []byte(csv.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	both := []string{"data.train_split=all.csv", "data.eval_split=all.csv"}
	total := count["train"] + count["val"]
	for name, sets := range map[string][]string{
		"split column": append([]string{"data.kind=csv"}, both...),
		"held out":     append([]string{"data.kind=csv", "data.eval_fraction=0.25"}, both...),
		"shards":       {"data.kind=webdataset", "data.eval_split=val-{000..000}.tar"},
	} {
		train, eval, err := Data(t.Context(), recipe(t, "resnet50", append(sets, "data.root="+dir)...), rank(1))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, total := count["train"], total
		if name == "held out" { // of the rows for training
			total = count["train"]
			want = total - eval.Len()
			if part := float64(eval.Len()) / float64(total); part < 0.15 || part > 0.35 {
				t.Errorf("%g is held out", part)
			}
		}
		if train.Len() != want || train.Len()+eval.Len() != total || len(train.Classes()) != 5 || !slices.Equal(train.Classes(), eval.Classes()) {
			t.Errorf("%s: %d and %d samples, classes %v", name, train.Len(), eval.Len(), train.Classes())
		}
		if name == "shards" {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, _, err := Data(ended, recipe(t, "resnet50", append(sets, "data.root="+dir)...), rank(1)); !errors.Is(err, context.Canceled) {
				t.Errorf("after the context has ended: %v", err)
			}
		}
		// A run that does not evaluate trains on the same rows, and its checkpoints are evaluated on the others.
		r := recipe(t, "resnet50", append(sets, "data.root="+dir, "eval.enabled=false", "eval.every_epochs=0")...)
		alone, none, err := Data(t.Context(), r, rank(1))
		if err != nil || none != nil || alone.Len() != train.Len() {
			t.Errorf("%s, without evaluation: %v, %v, want %d samples", name, alone, err, train.Len())
		}
		if held, err := heldOut(t.Context(), r, train.Classes(), rank(1)); err != nil || held.Len() != eval.Len() {
			t.Errorf("%s, evaluated: %v, %v, want %d samples", name, held, err, eval.Len())
		}
	}
}
