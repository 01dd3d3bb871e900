package confusion

import (
	"cmp"
	"fmt"
	"slices"
)

// Matrix counts samples by true and predicted class.
type Matrix struct {
	names  []string
	counts []int // [true][predicted]
}

// New is an empty matrix of the named classes.
func New(names []string) *Matrix {
	return &Matrix{names: names, counts: make([]int, len(names)*len(names))}
}

// Of is a matrix of counts that were added up elsewhere, row by row, such as the values of a train.Tensor.
func Of(names []string, counts []float64) (*Matrix, error) {
	m := New(names)
	if len(counts) != len(m.counts) {
		return nil, fmt.Errorf("confusion: %d counts of %d classes, want %d", len(counts), len(names), len(m.counts))
	}
	for i, v := range counts {
		if m.counts[i] = int(v); float64(m.counts[i]) != v || v < 0 {
			return nil, fmt.Errorf("confusion: the count of %s as %s is %g", names[i/len(names)], names[i%len(names)], v)
		}
	}
	return m, nil
}

// Add counts one sample. Labels outside the classes are an error.
func (m *Matrix) Add(label, predicted int) error {
	n := len(m.names)
	if label < 0 || label >= n || predicted < 0 || predicted >= n {
		return fmt.Errorf("confusion: label %d predicted as %d, but there are %d classes", label, predicted, n)
	}
	m.counts[label*n+predicted]++
	return nil
}

// Names are the classes.
func (m *Matrix) Names() []string { return m.names }

// At is the number of samples of a class that were predicted as another, or as the same.
func (m *Matrix) At(label, predicted int) int { return m.counts[label*len(m.names)+predicted] }

// Counts are all numbers, by true and then by predicted class.
func (m *Matrix) Counts() [][]int {
	out := make([][]int, len(m.names))
	for i := range out {
		out[i] = slices.Clone(m.counts[i*len(m.names):][:len(m.names)])
	}
	return out
}

// Total is the number of samples.
func (m *Matrix) Total() int {
	n := 0
	for _, c := range m.counts {
		n += c
	}
	return n
}

// Accuracy is the part of the samples whose class was predicted, 0 without samples.
func (m *Matrix) Accuracy() float64 {
	right := 0
	for i := range m.names {
		right += m.At(i, i)
	}
	return part(right, m.Total())
}

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// Class is what is known of one class.
type Class struct {
	Name      string  `json:"class"`
	Samples   int     `json:"samples"`   // that have this class
	Predicted int     `json:"predicted"` // that were taken for it
	Correct   int     `json:"correct"`
	Recall    float64 `json:"accuracy"` // Correct / Samples
	Precision float64 `json:"precision"`
	F1        float64 `json:"f1"`
	// Mistaken is the class that most of the others were taken for, "" if there are none, and For how many.
	Mistaken string `json:"mistaken_for,omitempty"`
	For      int    `json:"mistaken,omitempty"`
}

// Classes describes every class.
func (m *Matrix) Classes() []Class {
	out := make([]Class, len(m.names))
	for i, name := range m.names {
		c := Class{Name: name, Correct: m.At(i, i)}
		for j := range m.names {
			c.Samples += m.At(i, j)
			c.Predicted += m.At(j, i)
			if n := m.At(i, j); j != i && n > c.For {
				c.Mistaken, c.For = m.names[j], n
			}
		}
		c.Recall, c.Precision = part(c.Correct, c.Samples), part(c.Correct, c.Predicted)
		c.F1 = part(2*c.Correct, c.Samples+c.Predicted)
		out[i] = c
	}
	return out
}

// Macro are the means of recall, precision and F1 over the classes that occur among labels or predictions, each counted the same, as scikit-learn's
// average="macro".
func (m *Matrix) Macro() (recall, precision, f1 float64) {
	n := 0
	for _, c := range m.Classes() {
		if c.Samples+c.Predicted > 0 {
			recall, precision, f1, n = recall+c.Recall, precision+c.Precision, f1+c.F1, n+1
		}
	}
	if n == 0 {
		return 0, 0, 0
	}
	return recall / float64(n), precision / float64(n), f1 / float64(n)
}

// Pair is how often one class was taken for another.
type Pair struct {
	Class     string `json:"class"`
	Predicted string `json:"predicted"`
	Samples   int    `json:"samples"`
	Of        int    `json:"of"` // samples of the class
}

// Mistakes are the pairs of different classes that were confused, the most frequent first.
func (m *Matrix) Mistakes() []Pair {
	var out []Pair
	for i, c := range m.Classes() {
		for j := range m.names {
			if n := m.At(i, j); i != j && n > 0 {
				out = append(out, Pair{c.Name, m.names[j], n, c.Samples})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Pair) int { return cmp.Compare(b.Samples, a.Samples) })
	return out
}
