package assemble

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What every rank of a job would log alike is a warning once: on rank 0. A held-out picture is read by one rank only, so that rank reports it.
func TestNoticesAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(old)
	for rank := range 3 {
		n := &notices{rank: rank}
		training, heldOut := n.damaged(true), n.damaged(false)
		for range 2 {
			n.turned("turned.jpg")
			training("training.jpg", "cut")
			if rank == 2 {
				heldOut("held-out.jpg", "cut")
			}
		}
		r := decoded(t, "run.steps=3", "schedule.warmup_epochs=5", "data.kind=synthetic")
		if _, err := Schedule(r, 16, rank)(3, 10); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"turned.jpg", "training.jpg", "held-out.jpg", "ends during warm-up"} {
		if n := strings.Count(out.String(), want); n != 1 {
			t.Errorf("%q is logged %d times in\n%s", want, n, out.String())
		}
	}
}

// Rows that a file marks as held out are not trained on without a word.
func TestMarkedRows(t *testing.T) {
	dir := t.TempDir()
	pictures, _ := filepath.Glob("../data/flowers/train/*/*.jpg")
	csv := "path,label,split\n"
	for i, split := range []string{"train", "Val", "test", "train"} {
		abs, err := filepath.Abs(pictures[i])
		if err != nil {
			t.Fatal(err)
		}
		csv += fmt.Sprintf("%s,%d,%s\n", abs, i%2, split)
	}
	if err := os.WriteFile(filepath.Join(dir, "all.csv"), []byte(csv), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(old)
	for _, x := range []struct {
		same   string
		rows   int
		said   string
		before int // warnings about the recipe
	}{{"", 4, "marked=2 rows=4", 1}, {"all.csv", 2, "", 0}} {
		out.Reset()
		sets := []string{"data.kind=csv", "data.root=" + dir, "data.train_split=all.csv", "eval.enabled=false", "eval.every_epochs=0"}
		if x.same != "" {
			sets = append(sets, "data.eval_split="+x.same)
		}
		r := recipe(t, "resnet50", sets...)
		src, _, err := Data(t.Context(), r, rank(1))
		if err != nil || src.Len() != x.rows {
			t.Fatal(src, err)
		}
		if got := out.String(); !strings.Contains(got, x.said) || (x.said == "") != (got == "") {
			t.Errorf("%q: %s", x.same, got)
		}
		if w := r.Warnings(); len(w) != x.before || len(w) > 0 && !strings.Contains(w[0], "all rows of all.csv are for training") {
			t.Errorf("%q: %q", x.same, w)
		}
	}
}

// Numbers with gaps give classes that nothing trains.
func TestUntrainedClasses(t *testing.T) {
	dir := t.TempDir()
	pictures, _ := filepath.Glob("../data/flowers/train/*/*.jpg")
	var csv strings.Builder
	for i, p := range pictures[:3] {
		abs, err := filepath.Abs(p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&csv, "%s,%d\n", abs, []int{0, 3, 30}[i])
	}
	if err := os.WriteFile(filepath.Join(dir, "train.csv"), []byte(csv.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(old)
	for i := range 2 {
		id := rank(1)
		id.Rank = i
		r := recipe(t, "resnet50", "data.kind=csv", "data.root="+dir, "eval.enabled=false", "eval.every_epochs=0")
		if _, _, err := Data(t.Context(), r, id); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Count(got, "no training samples") != 1 || !strings.Contains(got, `"1, 2, 4, 5, `) ||
		!strings.Contains(got, "empty=28 of=31") {
		t.Error(got)
	}
}
