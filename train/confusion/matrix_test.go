package confusion

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fixture is what scikit-learn says (testdata/make_sklearn.py).
type fixture struct {
	Labels, Predicted     []int
	Accuracy              float64
	Confusion             [][]int
	Precision, Recall, F1 []float64
	Support               []int
}

func sklearn(t *testing.T) (fixture, *Matrix) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "sklearn.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := json.Unmarshal(raw, &f); err != nil || len(f.Labels) != 400 {
		t.Fatal(err)
	}
	m := New([]string{"daisy", "dandelion", "roses", "sunflowers", "tulips", "nothing", "never"})
	for i, l := range f.Labels {
		if err := m.Add(l, f.Predicted[i]); err != nil {
			t.Fatal(err)
		}
	}
	return f, m
}

// All numbers are scikit-learn's, also of a class without samples and of one that is never predicted.
func TestNumbersAreThoseOfScikitLearn(t *testing.T) {
	f, m := sklearn(t)
	same := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-15 {
			t.Errorf("%s is %v, scikit-learn's %v", what, got, want)
		}
	}
	same("accuracy", m.Accuracy(), f.Accuracy)
	if got := fmt.Sprint(m.Counts()); got != fmt.Sprint(f.Confusion) {
		t.Errorf("the matrix is\n%v, scikit-learn's\n%v", got, f.Confusion)
	}
	counts, macro := []float64{}, [3]float64{}
	for i, row := range m.Counts() {
		for _, n := range row {
			counts = append(counts, float64(n))
		}
		macro[0], macro[1], macro[2] = macro[0]+f.Recall[i]/7, macro[1]+f.Precision[i]/7, macro[2]+f.F1[i]/7 // all occur
	}
	of, err := Of(m.Names(), counts)
	if err != nil || fmt.Sprint(of.Counts()) != fmt.Sprint(f.Confusion) {
		t.Errorf("Of: %v, %v", of, err)
	}
	recall, precision, f1 := of.Macro()
	for i, got := range []float64{recall, precision, f1} {
		if math.Abs(got-macro[i]) > 1e-15 {
			t.Errorf("macro average %d is %v, scikit-learn's %v", i, got, macro[i])
		}
	}
	for i, c := range m.Classes() {
		same(c.Name+": recall", c.Recall, f.Recall[i])
		same(c.Name+": precision", c.Precision, f.Precision[i])
		same(c.Name+": F1", c.F1, f.F1[i])
		if c.Samples != f.Support[i] {
			t.Errorf("%s has %d samples, scikit-learn's %d", c.Name, c.Samples, f.Support[i])
		}
	}
	sum := 0
	for i, p := range m.Mistakes() {
		sum += p.Samples
		if i > 0 && p.Samples > m.Mistakes()[i-1].Samples {
			t.Error("mistakes are not sorted")
		}
	}
	if want := int(math.Round(400 * (1 - f.Accuracy))); sum != want {
		t.Errorf("%d mistakes, want %d", sum, want)
	}
}

func TestUnknownLabels(t *testing.T) {
	m := New([]string{"a", "b"})
	for _, c := range [][2]int{{-1, 0}, {2, 0}, {0, 2}, {0, -1}} {
		if m.Add(c[0], c[1]) == nil {
			t.Error("accepts", c)
		}
	}
	if m.Accuracy() != 0 || m.Total() != 0 {
		t.Error("an empty matrix has an accuracy")
	}
}

// The CSV has all numbers with their names.
func TestCSV(t *testing.T) {
	f, m := sklearn(t)
	m.names[2] = `roses, "red"`
	var b bytes.Buffer
	if err := m.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 8 || rows[0][3] != `roses, "red"` || rows[3][0] != rows[0][3] {
		t.Fatalf("%v %v", rows, err)
	}
	for i, row := range rows[1:] {
		for j, v := range row[1:] {
			if v != strconv.Itoa(f.Confusion[i][j]) {
				t.Errorf("row %d column %d is %s, want %d", i, j, v, f.Confusion[i][j])
			}
		}
	}
}

func TestText(t *testing.T) {
	_, m := sklearn(t)
	var b strings.Builder
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteClasses(&b); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "text.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	big := many(1000)
	b.Reset()
	if err := big.WriteText(&b); err != nil || strings.Count(b.String(), "\n") != 32 || !strings.Contains(b.String(), "more pairs") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// many is a matrix of n classes that are often taken for their neighbour.
func many(n int) *Matrix {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("class number ", i)
	}
	m := New(names)
	for i := range n {
		for k := range 10 {
			to := i
			if k < 3 {
				to = (i + 1) % n
			}
			if m.Add(i, to) != nil {
				panic("label")
			}
		}
	}
	return m
}

// Pictures of few and of many classes have a usable size, and the diagonal is darker than what is beside it.
func TestPNG(t *testing.T) {
	for _, n := range []int{1, 2, 7, 37, 102, 1000} {
		m := many(n)
		var b bytes.Buffer
		if err := m.WritePNG(&b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if s := img.Bounds(); s.Dx() > 2400 || s.Dy() > 2400 || s.Dx() < 100 {
			t.Errorf("%d classes: %v", n, s)
		}
		c := m.chart()
		at := func(i, j int) uint32 {
			r, _, _, _ := img.At(c.left+j*c.cell+1, c.top+i*c.cell+1).RGBA()
			return r
		}
		for i := range n - 2 {
			if !(at(i, i) < at(i, i+1) && at(i, i+1) < at(i, i+2)) {
				t.Fatalf("%d classes: row %d: %x %x %x", n, i, at(i, i), at(i, i+1), at(i, i+2))
			}
		}
	}
	if err := New(nil).WritePNG(&bytes.Buffer{}); err == nil {
		t.Error("draws nothing")
	}
}

// Counts that are none are refused; a class that never occurs is not part of the averages.
func TestCountsOfOthers(t *testing.T) {
	for _, bad := range [][]float64{{1, 2, 3}, {1, 2, 3, 0.5}, {1, -2, 3, 4}, {1, 2, math.NaN(), 4}, {1, math.Inf(1), 3, 4}} {
		if _, err := Of([]string{"a", "b"}, bad); err == nil {
			t.Errorf("%v is a matrix", bad)
		}
	}
	m, err := Of([]string{"a", "b", "c"}, []float64{3, 1, 0, 0, 4, 0, 0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if recall, _, _ := m.Macro(); recall != (0.75+1)/2 {
		t.Errorf("the mean recall is %v", recall)
	}
	if a, b, c := New([]string{"a"}).Macro(); a != 0 || b != 0 || c != 0 {
		t.Error(a, b, c)
	}
}
