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
