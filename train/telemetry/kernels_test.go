package telemetry

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestReadKernels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if _, err := ReadKernels(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	j, err := NewJSONL(path)
	if err != nil {
		t.Fatal(err)
	}
	emit := func(e Event) {
		t.Helper()
		if err := j.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	emit(RunStart{Name: "x"})
	if _, err := ReadKernels(path); !errors.Is(err, ErrNoKernels) {
		t.Errorf("no step: %v", err)
	}
	for i, v := range []float64{5, 1, 3} {
		emit(Step{Step: int64(i + 1), Compute: Known(v), Took: Known(v + 1), Wait: Known(v / 10)})
	}
	k, err := ReadKernels(path)
	if err != nil || k.Compute != 3 || k.Took != 4 || k.Exposed != 0.3 || k.Steps != 3 {
		t.Errorf("medians of steps: %+v %v", k, err)
	}
	want := Kernels{Step: 9, Steps: 15, Forward: 0.25, Compute: 0.5, Took: 1, Ready: []Ready{{"fc.weight", 0.125}}}
	emit(Kernels{Compute: 7})
	emit(want)
	_, err = j.f.WriteString(`{"event":"kernels","compute":`) // cut off
	must(t, err)
	k, err = ReadKernels(path)
	k.Time = want.Time
	if err != nil || !reflect.DeepEqual(k, want) {
		t.Errorf("%+v, want %+v: %v", k, want, err)
	}
	j.Close()
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 2}, 3}, {[]float64{9, 1, 5}, 5}} {
		if got := Median(c.v); got != c.want {
			t.Errorf("%v: %v, want %v", c.v, got, c.want)
		}
	}
}
