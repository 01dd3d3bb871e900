package survey_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
	"github.com/gotrain/gotrain/train/data/survey"
)

// folder copies some pictures of the bundled flowers.
func folder(t *testing.T, at string, files map[string]string) *images.Folder {
	t.Helper()
	root, err := data.Locate("flowers/val")
	if err != nil {
		t.Fatal(err)
	}
	pictures, _ := filepath.Glob(filepath.Join(root, "*", "*.jpg"))
	for name, what := range files {
		raw := []byte("no picture")
		if n := strings.TrimLeft(what, "p"); n != what {
			if raw, err = os.ReadFile(pictures[int(n[0]-'0')]); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(what, "cut") {
				raw = raw[:len(raw)/2]
			}
		}
		p := filepath.Join(at, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := images.NewFolder(at, images.Options{Transform: images.ResizeCrop{Short: 8, Width: 8, Height: 8}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestExamine(t *testing.T) {
	train := folder(t, t.TempDir(), map[string]string{"a/1.jpg": "p1", "a/2.jpg": "p2", "a/bad.jpg": "x", "b/3.jpg": "p1", "b/4.jpg": "p3", "b/cut.jpg": "p4cut"})
	val := folder(t, t.TempDir(), map[string]string{"a/5.jpg": "p2", "b/6.jpg": "p5"})
	last := 0
	r, err := survey.Examine(t.Context(), []survey.Set{{Name: "train", Source: train}, {Name: "val", Source: val}},
		survey.Options{Progress: func(done, all int) {
			if last = done; all != 8 {
				t.Errorf("%d of %d", done, all)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Sets[0]
	if s.Samples != 6 || len(s.Broken) != 2 || r.Broken() != 2 || last != 8 || s.Formats["jpeg"] != 4 ||
		s.Classes[1] != (survey.ClassCount{Name: "b", Samples: 3}) {
		t.Errorf("%+v, %d read", s, last)
	}
	if !strings.HasSuffix(s.Broken[0].Path, "bad.jpg") || !strings.Contains(s.Broken[0].Reason, "text that begins with") || s.Imbalance() != 1 {
		t.Errorf("%+v", s.Broken)
	}
	if s.Width.Min < 100 || s.Width.Max > 400 || len(s.Mean) != 3 || s.Mean[0] < 0.1 || s.Mean[0] > 0.9 || s.Std[0] < 0.05 || s.Std[0] > 0.5 {
		t.Errorf("%+v %+v %v %v", s.Width, s.Height, s.Mean, s.Std)
	}
	if len(r.Duplicates) != 2 || !r.Duplicates[0].Labels || r.Duplicates[0].Sets || !r.Duplicates[1].Sets || r.Duplicates[1].Labels {
		t.Errorf("%+v", r.Duplicates)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := survey.Examine(ctx, []survey.Set{{Name: "train", Source: train}}, survey.Options{}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
}

// Samples that are not pictures in files are loaded.
func TestExamineSlices(t *testing.T) {
	src, err := data.FromSlices("four", data.Floats("image", []float32{0, 1, 0, 1, 1, 1, 0, 1}, 1, 1, 2), data.Labels("label", []int{0, 0, 2, 2}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := survey.Examine(t.Context(), []survey.Set{{Name: "all", Source: src}}, survey.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Sets[0]
	if s.Samples != 4 || len(s.Classes) != 3 || s.Classes[2].Samples != 2 || s.Imbalance() != 0 || math.Abs(s.Mean[0]-0.625) > 1e-12 ||
		math.Abs(s.Std[0]-math.Sqrt(0.625*0.375)) > 1e-12 {
		t.Errorf("%+v", s)
	}
	if len(r.Duplicates) != 1 || len(r.Duplicates[0].Samples) != 3 || !r.Duplicates[0].Labels {
		t.Errorf("%+v", r.Duplicates)
	}
}

// lastFirst holds the first sample back until all others were loaded.
type lastFirst struct {
	data.Source
	others sync.WaitGroup
}

func (s *lastFirst) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	if i == 0 {
		s.others.Wait()
	} else {
		defer s.others.Done()
	}
	return s.Source.Load(ctx, r, i, dst)
}

// Mean and deviation have the same bits in whichever order samples are examined.
func TestMomentsInAnyOrder(t *testing.T) {
	const n = 50
	values := []float32{1e8}
	for i := 1; i < n; i++ {
		values = append(values, 1/float32(i+2))
	}
	src, err := data.FromSlices("numbers", data.Floats("image", values, 1, 1, 1), data.Labels("label", make([]int, n)))
	if err != nil {
		t.Fatal(err)
	}
	held := &lastFirst{Source: src}
	held.others.Add(n - 1)
	var reports []survey.SetReport
	for _, x := range []struct {
		src     data.Source
		workers int
	}{{src, 1}, {held, 2}} {
		r, err := survey.Examine(t.Context(), []survey.Set{{Name: "all", Source: x.src}}, survey.Options{Workers: x.workers})
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r.Sets[0])
	}
	if a, b := reports[0], reports[1]; a.Mean[0] != b.Mean[0] || a.Std[0] != b.Std[0] {
		t.Errorf("mean %v and %v, deviation %v and %v", a.Mean, b.Mean, a.Std, b.Std)
	}
}
