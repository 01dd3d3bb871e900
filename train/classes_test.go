package train

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
)

// labelled adds class names to a source.
type labelled struct {
	data.Source
	classes []string
}

func (l labelled) Classes() []string { return l.classes }

func withClasses(t *testing.T, classes ...string) Option {
	return func(c *Config) {
		c.Data, c.Eval = labelled{images(t, 50), classes}, labelled{images(t, 21), classes}
	}
}

// A model trained on cat, dog and owl resumes with exactly these classes in this order, or not at all.
func TestResumeWithOtherClasses(t *testing.T) {
	dir := t.TempDir()
	run := func(o ...Option) error {
		_, errs := together(t, 2, func(int) []Option { return append(small(t, dir, 2), o...) }, nil)
		return errors.Join(errs...)
	}
	if err := run(withClasses(t, "cat", "dog", "owl", "pig")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		classes []string
		want    string
	}{
		{[]string{"cat", "dog", "owl", "pig"}, ""},
		{[]string{"a_dog", "cat", "owl", "pig"}, "missing: dog; unknown: a_dog; at another label: cat 0 -> 1"},
		{[]string{"cat", "owl", "dog", "pig"}, "at another label: dog 1 -> 2, owl 2 -> 1"},
		{[]string{"cat", "dog", "owl"}, "missing: pig"},
		{[]string{"cat", "dog", "owl", "pig", "yak"}, "unknown: yak"},
	} {
		err := run(withClasses(t, c.classes...), WithSteps(3))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.classes, err)
		case c.want != "" && (launch.ExitCode(err) != launch.ExitRecipe || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "hint: ")):
			t.Errorf("%v: exit code %d: %v, want %q", c.classes, launch.ExitCode(err), err, c.want)
		}
	}
}

// An evaluation with the classes in another order is refused, however the checkpoint is given; omitting the last classes keeps all labels.
func TestEvaluateWithOtherClasses(t *testing.T) {
	dir := t.TempDir()
	if _, errs := together(t, 1, func(int) []Option { return append(small(t, dir, 2), withClasses(t, "cat", "dog", "owl", "pig")) }, nil); errs[0] != nil {
		t.Fatal(errs[0])
	}
	ck := filepath.Join(dir, "step-00000002")
	was, err := ClassesOf(ck)
	if file, e := ClassesOf(filepath.Join(ck, checkpoint.ModelFile)); err != nil || e != nil ||
		strings.Join(was, " ") != "cat dog owl pig" || len(file) != len(was) {
		t.Fatal(was, file, err, e)
	}
	for way, from := range map[string]Option{
		"init_from": func(c *Config) { c.InitFrom, c.SaveDir, c.SaveEvery, c.Resume = ck, "", 0, false },
		"resume":    func(c *Config) { c.ResumeFrom, c.SaveDir, c.SaveEvery = ck, "", 0 },
	} {
		for _, c := range []struct {
			classes []string
			want    string
		}{{was, ""}, {[]string{"cat", "dog"}, ""}, {nil, ""}, {[]string{"dog", "cat"}, "dog 1 -> 0"}, {append(was[:4:4], "yak"), "unknown: yak"}} {
			held := labelled{images(t, 21), c.classes}
			tr, err := New(append(small(t, "", 2), from, WithData(held, 6), WithEval(held, 0))...)
			if err != nil {
				t.Fatal(err)
			}
			out, err := tr.Evaluate(context.Background())
			switch {
			case c.want == "" && (err != nil || out["items"] != 21):
				t.Errorf("%s, %v: %v %v", way, c.classes, out, err)
			case c.want != "" && (launch.ExitCode(err) != launch.ExitRecipe || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s, %v: exit code %d: %v", way, c.classes, launch.ExitCode(err), err)
			}
		}
	}
}

// An evaluation reads no training sample.
func TestEvaluateReadsNoTrainingSample(t *testing.T) {
	tr, err := New(append(small(t, "", 2), noCheckpoints, WithData(unread{images(t, 50), t}, 6), WithSchedule(func(int, int) (optim.Schedule, error) {
		t.Error("an evaluation has no learning rate")
		return blowUp{}, nil
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tr.Evaluate(context.Background()); err != nil || out["items"] != 21 {
		t.Error(out, err)
	}
}

type unread struct {
	data.Source
	t *testing.T
}

func (u unread) Load(context.Context, *data.Rand, int, [][]byte) error {
	u.t.Error("a training sample is read")
	return errors.New("no")
}

func TestHeldOutSamplesHaveTheClassesOfTraining(t *testing.T) {
	_, err := New(append(small(t, "", 2), noCheckpoints, withClasses(t, "cat", "dog"), WithEval(labelled{images(t, 21), []string{"dog"}}, 0))...)
	if err == nil || !strings.Contains(err.Error(), "dog 1 -> 0") && !strings.Contains(err.Error(), "missing: cat") {
		t.Error(err)
	}
}

// The state of a checkpoint is read without its tensors, and rejected if it was changed.
func TestClassesOfDamagedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	if _, errs := together(t, 1, func(int) []Option { return append(small(t, dir, 2), withClasses(t, "cat", "dog", "owl", "pig")) }, nil); errs[0] != nil {
		t.Fatal(errs[0])
	}
	ck := filepath.Join(dir, "step-00000002")
	path := filepath.Join(ck, checkpoint.StateFile)
	raw, err := os.ReadFile(path)
	if err != nil || !json.Valid(raw) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), `"cat"`, `"rat"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := ClassesOf(ck); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ClassesOf(dir); got != nil || err != nil {
		t.Errorf("a folder of checkpoints: %v, %v", got, err)
	}
}
