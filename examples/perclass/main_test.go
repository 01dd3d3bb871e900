package main

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	_ "github.com/gotrain/gotrain/recipes/data"
	"github.com/gotrain/gotrain/train/data"
)

// Every step has a line with a number for each class, and the held-out pictures are all in the matrix, each in the row of its class.
func TestPerClass(t *testing.T) {
	root, err := data.Locate("flowers")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	res, err := run(t.Context(), &out, root, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "accuracy by class ["); n != res.Steps || n == 0 {
		t.Errorf("%d lines of %d steps:\n%s", n, res.Steps, out.String())
	}
	m := res.Values["confusion"]
	for i := range m.Shape[0] {
		if m.Row(i).Sum() != 20 {
			t.Errorf("%v pictures of class %d, want 20", m.Row(i).Sum(), i)
		}
		if got, want := res.Values["accuracy"].Values[i], m.At(i, i)/m.Row(i).Sum(); !(math.Abs(got-want) < 1e-12) {
			t.Errorf("class %d: %g, want %g", i, got, want)
		}
	}
	if m.Sum() != res.Eval["items"] || len(m.Shape) != 2 {
		t.Errorf("%v, %v", res.Eval, m)
	}
}

// Without a folder, or with one that is not there, it says what it needs.
func TestPerClassUsage(t *testing.T) {
	for want, args := range map[string][]string{"usage: perclass PICTURES": nil, "usage: perclass": {"a", "b"}, "no such file": {t.TempDir()}} {
		if err := perclass(args, io.Discard, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
