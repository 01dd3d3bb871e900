package images

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// listed writes a CSV file next to three pictures, one with a comma in its name.
func csvFile(t *testing.T, text string) string {
	dir := t.TempDir()
	raw, err := os.ReadFile("testdata/zoo/png_named_jpg.jpg")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"a.jpg", "b, c.jpg", "sub/d.jpg"} {
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "list.csv")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

var tinyCrop = Options{Transform: ResizeCrop{Short: 8, Width: 8, Height: 8}}

func ofModel(classes ...string) ListOptions { return ListOptions{Options: Options{Classes: classes}} }

func TestList(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		opt     ListOptions
		classes string
		labels  []int
	}{
		"bare":       {text: "a.jpg,cat\n\"b, c.jpg\",dog\nsub/d.jpg,cat\n", classes: "cat dog", labels: []int{0, 1, 0}},
		"header":     {text: "\ufefflabel;id;Filename\r\ncat;1;a.jpg\r\ndog;2;\"b, c.jpg\"\r\n\r\n", classes: "cat dog", labels: []int{0, 1}},
		"tabs":       {text: "path\tclass\nsub/d.jpg\tx\n", classes: "x", labels: []int{0}},
		"numbers":    {text: "a.jpg,2\nsub/d.jpg,00\n", classes: "0 1 2", labels: []int{2, 0}},
		"named":      {text: "x,y,z\na.jpg,q,1\n", opt: ListOptions{Path: "X", Label: "3"}, classes: "0 1", labels: []int{1}},
		"by number":  {text: "7,a.jpg\n", opt: ListOptions{Path: "2", Label: "1"}, classes: "0 1 2 3 4 5 6 7", labels: []int{7}},
		"over usual": {text: "label,path\n7,a.jpg\n", opt: ListOptions{Path: "2", Label: "1"}, classes: "0 1 2 3 4 5 6 7", labels: []int{7}},
		"over one":   {text: "what,image\nq,a.jpg\n", opt: ListOptions{Path: "2", Label: "1"}, classes: "q", labels: []int{0}},
		"y or n":     {text: "a.jpg,y\nsub/d.jpg,n\n", opt: ListOptions{Path: "1", Label: "2"}, classes: "n y", labels: []int{1, 0}},
		"zeros":      {text: "a.jpg,007\nsub/d.jpg,7\n", opt: ofModel("007", "7", "x"), classes: "007 7 x", labels: []int{0, 1}},
		"zeros of 7": {text: "a.jpg,007\nsub/d.jpg,x\n", opt: ofModel("7", "x"), classes: "7 x", labels: []int{0, 1}},
		"one split":  {text: "path,label,split\na.jpg,u,train\nsub/d.jpg,v,Validation\n", opt: ListOptions{Rows: "val"}, classes: "v", labels: []int{0}},
		"held of":    {text: "path,label,split\na.jpg,u,train\nsub/d.jpg,v,test\n", opt: ListOptions{Holdout: 1e-9}, classes: "u", labels: []int{0}},
		"no held":    {text: "path,label\na.jpg,u\n", opt: ListOptions{Holdout: 1e-9}, classes: "u", labels: []int{0}},
		"of a model": {text: "a.jpg,dog\n", opt: ListOptions{Options: Options{Classes: []string{"cat", "dog"}}}, classes: "cat dog", labels: []int{1}},
	} {
		c.opt.Transform = tinyCrop.Transform
		l, err := NewList(csvFile(t, c.text), c.opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var labels []int
		for i := range l.Len() {
			labels = append(labels, l.Label(i))
		}
		if strings.Join(l.Classes(), " ") != c.classes || !slices.Equal(labels, c.labels) {
			t.Errorf("%s: classes %v labels %v", name, l.Classes(), labels)
		}
		if bad, err := data.Check(t.Context(), l, 1); err != nil || len(bad) > 0 {
			t.Errorf("%s: %v %v", name, bad, err)
		}
		o := c.opt
		o.Listing = l.Listing()
		again, err := NewList(l.file, o)
		if err != nil || !slices.Equal(again.rows, l.rows) || !slices.Equal(again.classes, l.classes) {
			t.Errorf("%s: listed %v", name, err)
		}
		a, _ := l.Fingerprint()
		if b, _ := again.Fingerprint(); a != b {
			t.Errorf("%s: fingerprints %s %s", name, a, b)
		}
	}
}

// All problems are reported at once, with file and line.
func TestListProblems(t *testing.T) {
	file := csvFile(t, "path,label\na.jpg,cat\nmissing.jpg,cat\na.jpg\n,cat\na.jpg,\nsub,cat\na.jpg,cow\na.jpg,\"cat\n")
	_, err := NewList(file, ListOptions{Options: Options{Transform: tinyCrop.Transform, Classes: []string{"cat"}}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"7 problems", ":3: ", "missing.jpg: no such file", ":4: 1 cells, want 2", ":5: the path is empty", ":6: the label is empty",
		":7: ", "sub is not a file", ":8: label \"cow\" is not among the 1 classes", ":9: column 12", "hint: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	for text, want := range map[string]string{
		"":                              "no rows",
		"a.jpg\n":                       "one column",
		"path,size\na.jpg,1\n":          "no column has a title that means the label",
		"path,label,split\na.jpg,1,b\n": `no row of the split "val"; its splits are "b" (1)`,
		"\xff\xfea\x00":                 "UTF-16",
		"a.jpg,9999999\n":               "not below",
	} {
		o := ListOptions{Options: tinyCrop}
		if strings.Contains(text, "split") {
			o.Rows = "val"
		}
		if _, err := NewList(csvFile(t, text), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A held-out part and the rest are all rows, and stay what they are when rows are added.
func TestListHoldout(t *testing.T) {
	split := func(n int) (in, out []string) {
		for i := range n {
			p := "img" + strings.Repeat("0", i%7) + string(rune('a'+i%26)) + filepath.Base(t.Name()) + strings.Repeat("x", i/26) + ".jpg"
			if held(p, 0.2) {
				out = append(out, p)
			} else {
				in = append(in, p)
			}
		}
		return in, out
	}
	in, out := split(2000)
	if len(in)+len(out) != 2000 || len(out) < 340 || len(out) > 460 {
		t.Errorf("%d and %d of 2000", len(in), len(out))
	}
	_, few := split(1000)
	if !slices.Equal(few, out[:len(few)]) {
		t.Error("the part changes when rows are added")
	}
}

func FuzzTable(f *testing.F) {
	f.Add("path,label\na.jpg,\"x\"\n")
	f.Add("a;1\nb;2;3\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "list.csv")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := readTable(file, &ListOptions{})
		if err != nil {
			return
		}
		if len(table.paths) != len(table.words) || len(table.paths) != len(table.lines) {
			t.Fatal("columns differ in length")
		}
		number(table.words, nil, func(int, string) {})
	})
}
