package data

import (
	"slices"
	"strings"
	"testing"
)

func TestFromSlices(t *testing.T) {
	s, err := FromSlices("pairs", Floats("x", []float32{1, 2, 3, 4, 5, 6}, 2), Ints("at", []int32{7, 8, 9}), Labels("label", []int{0, 1, 1}))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.WithClasses("no", "yes"); err != nil {
		t.Fatal(err)
	}
	l, err := NewLoader(s, Options{Batch: 2, Tail: Short, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var x []float32
	var labels []int32
	for range 2 {
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x, labels = append(x, b.F32(0)...), append(labels, b.I32(2)...)
		b.Release()
	}
	if !slices.Equal(x, []float32{1, 2, 3, 4, 5, 6, 0, 0}) || !slices.Equal(labels, []int32{0, 1, 1, Ignore}) {
		t.Errorf("read %v %v", x, labels)
	}
	g, err := NewGroups(s)
	if err != nil || g.String() != "2 classes of 1 to 2 samples" {
		t.Error(g, err)
	}
	a, _ := s.Fingerprint()
	other, err := FromSlices("pairs", Floats("x", []float32{1, 2, 3, 4, 5, 7}, 2), Ints("at", []int32{7, 8, 9}), Labels("label", []int{0, 1, 1}))
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := other.Fingerprint(); a == b {
		t.Error("other values have the same fingerprint")
	}
	for want, columns := range map[string][]Column{
		"no columns":        {},
		"whole number":      {Floats("x", make([]float32, 5), 2)},
		"has 3 samples":     {Floats("x", make([]float32, 4), 2), Labels("label", []uint8{1, 2, 3})},
		"used twice":        {Floats("x", make([]float32, 4), 2), Ints("x", make([]int32, 2))},
		"no 32-bit number":  {Labels("label", []int64{1 << 40})},
		"are not a whole n": {Floats("x", make([]float32, 4), 0)},
	} {
		if _, err := FromSlices("bad", columns...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := s.WithClasses("one"); err == nil {
		t.Error("label 1 of one class is accepted")
	}
}
