package survey

import (
	"cmp"
	"math"
	"slices"
)

// Report is what was found.
type Report struct {
	Sets []SetReport `json:"sets"`
	// Duplicates are groups of samples with equal bytes, in the order of their first member.
	Duplicates []Duplicate `json:"duplicates,omitempty"`
}

// SetReport is what was found in one set.
type SetReport struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Samples int    `json:"samples"`
	// Bytes is the size of all pictures as stored, or of all samples.
	Bytes   int64          `json:"bytes"`
	Classes []ClassCount   `json:"classes,omitempty"`
	Formats map[string]int `json:"formats,omitempty"` // pictures by format
	Width   *Range         `json:"width,omitempty"`   // of pictures, in pixels
	Height  *Range         `json:"height,omitempty"`
	Mean    []float64      `json:"mean,omitempty"` // by channel, of values from 0 to 1; every pixel counts alike
	Std     []float64      `json:"std,omitempty"`
	Damaged []Broken       `json:"damaged,omitempty"` // used as far as they can be read
	Broken  []Broken       `json:"broken,omitempty"`  // cannot be loaded
}

// ClassCount is a class and its number of samples.
type ClassCount struct {
	Name    string `json:"name"`
	Samples int    `json:"samples"`
}

// Range describes the distribution of a number.
type Range struct {
	Min    int `json:"min"`
	Median int `json:"median"`
	Max    int `json:"max"`
}

// Broken is a sample that is damaged, or cannot be loaded.
type Broken struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Duplicate is a group of equal samples.
type Duplicate struct {
	Samples []Copy `json:"samples"`
	// Sets says that they are in different sets: a held-out sample is trained on.
	Sets bool `json:"in_different_sets,omitempty"`
	// Labels says that they have different labels.
	Labels bool `json:"with_different_labels,omitempty"`
}

// Copy is one of several equal samples.
type Copy struct {
	Set   string `json:"set"`
	Path  string `json:"path"`
	Label int    `json:"label"` // -1: unknown
}

// Broken counts the samples of all sets that cannot be loaded.
func (r *Report) Broken() (n int) {
	for _, s := range r.Sets {
		n += len(s.Broken)
	}
	return n
}

// Imbalance is the number of samples of the largest class for each one of the smallest; 0 if a class has none, or there are no classes.
func (s *SetReport) Imbalance() float64 {
	if len(s.Classes) == 0 {
		return 0
	}
	by := func(a, b ClassCount) int { return cmp.Compare(a.Samples, b.Samples) }
	lo, hi := slices.MinFunc(s.Classes, by).Samples, slices.MaxFunc(s.Classes, by).Samples
	if lo == 0 {
		return 0
	}
	return float64(hi) / float64(lo)
}

func rangeOf(v []int) *Range {
	if len(v) == 0 {
		return nil
	}
	slices.Sort(v)
	return &Range{v[0], v[len(v)/2], v[len(v)-1]}
}

// moments sums values of channels.
type moments struct {
	n            float64
	sum, squares [3]float64
}

// levels sums bytes of channels. Whole numbers give the same sum in any order; they are divided at the end.
type levels struct {
	n            uint64
	sum, squares [3]uint64
}

func (l *levels) add(o *levels) {
	l.n += o.n
	for c := range l.sum {
		l.sum[c], l.squares[c] = l.sum[c]+o.sum[c], l.squares[c]+o.squares[c]
	}
}

// moments are those of values from 0 to 1.
func (l *levels) moments() *moments {
	m := &moments{n: float64(l.n)}
	for c := range l.sum {
		m.sum[c], m.squares[c] = float64(l.sum[c])/255, float64(l.squares[c])/(255*255)
	}
	return m
}

func (m *moments) add(o *moments) {
	m.n += o.n
	for c := range m.sum {
		m.sum[c], m.squares[c] = m.sum[c]+o.sum[c], m.squares[c]+o.squares[c]
	}
}

// result gives mean and standard deviation of the channels.
func (m *moments) result(channels int) (mean, std []float64) {
	if m.n == 0 {
		return nil, nil
	}
	for c := range channels {
		a := m.sum[c] / m.n
		mean, std = append(mean, a), append(std, math.Sqrt(max(0, m.squares[c]/m.n-a*a)))
	}
	return mean, std
}
