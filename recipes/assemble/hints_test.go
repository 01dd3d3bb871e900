package assemble

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/recipes"
)

// folders makes a data set of class folders with a picture each.
func folders(t *testing.T, paths ...string) string {
	t.Helper()
	picture, err := os.ReadFile("../../train/data/images/testdata/zoo/gray.jpg")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, p := range paths {
		at := filepath.Join(root, p, "1.jpg")
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func decoded(t *testing.T, sets ...string) *recipes.Recipe {
	t.Helper()
	r, err := recipes.Decode("[run]\nepochs = 1\n", "x.toml", sets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The error for a missing split gives the key that names it and lists what exists.
func TestMissingPartOfADataSet(t *testing.T) {
	root := folders(t, "train/cat", "train/dog", "test/cat")
	_, _, err := Data(t.Context(), decoded(t, "data.root="+root), Rank{})
	for _, want := range []string{"val: no such file", "\nhint: set data.eval_split to the name of the held-out split, or eval.enabled = false to " +
		"train without one", "contains test, train"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, _, err := Data(t.Context(), decoded(t, "data.root="+root, "eval.enabled=false"), Rank{}); err != nil {
		t.Error(err)
	}
	if _, _, err := Data(t.Context(), decoded(t, "data.root="+root, "data.train_split=training"), Rank{}); err == nil ||
		!strings.Contains(err.Error(), "set data.train_split to the name of the training split") {
		t.Error(err)
	}
}

// One class cannot be learned: its loss is 0 from the first step on.
func TestOneClassIsAnError(t *testing.T) {
	root := folders(t, "train/cat", "val/cat")
	for _, c := range []struct {
		set, want string
	}{
		{"model.classes=0", `has only one class, so there is nothing to learn` + "\n" + `hint: the only class folder is "cat"`},
		{"model.classes=1", `has only one class`}, {"model.classes=2", ""},
	} {
		r := decoded(t, "data.root="+root, c.set)
		src, _, err := Data(t.Context(), r, Rank{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Classes(r, src); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
}

// A warm-up longer than the run is reported, in whatever units the two are given.
func TestWarmupLongerThanTheRun(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want bool
	}{
		{[]string{"run.steps=3", "schedule.warmup_epochs=5"}, true}, {[]string{"run.epochs=2", "schedule.warmup_steps=50"}, true},
		{[]string{"run.steps=30", "schedule.warmup_epochs=1"}, false}, {[]string{"run.epochs=2", "schedule.warmup_steps=5"}, false},
	} {
		var out bytes.Buffer
		old := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
		r := decoded(t, append(c.sets, "data.kind=synthetic")...)
		total := r.Run.Steps
		if total == 0 {
			total = 20
		}
		_, err := Schedule(r, 16, 0)(total, 10)
		slog.SetDefault(old)
		if told := strings.Contains(out.String(), "ends during warm-up"); err != nil || told != c.want {
			t.Errorf("%v: told %v, want %v; %v", c.sets, told, c.want, err)
		}
	}
}
