package data

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// BadSample is a sample that could not be loaded.
type BadSample struct {
	Index int
	Err   error
}

// SampleError is the error of a Loader that ends because samples cannot be read.
type SampleError struct{ Err error }

func (e SampleError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e SampleError) Unwrap() error { return e.Err }

// badList counts distinct bad samples against a limit.
type badList struct {
	source string
	limit  int
	told   func(int, error)

	mu   sync.Mutex
	seen map[int]error
}

// add records a failure; it returns the error that ends the run, or nil if the sample may be skipped.
func (l *badList) add(index int, err error) error {
	if l.limit <= 0 {
		return SampleError{fmt.Errorf("%w\nhint: fix or remove the file, or skip bad samples: data.bad_files = \"skip\" in a recipe, SkipBad in Go", err)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.seen[index]; ok {
		return nil
	}
	if l.seen == nil {
		l.seen = map[int]error{}
	}
	l.seen[index] = err
	if len(l.seen) > l.limit {
		return l.over()
	}
	if l.told != nil {
		l.told(index, err)
	}
	return nil
}

// over lists the bad samples, in at most as many lines as a user will read.
func (l *badList) over() error {
	const shown = 20
	var b strings.Builder
	for i, s := range l.sorted() {
		if i == shown {
			fmt.Fprintf(&b, "\n  and %d more", len(l.seen)-shown)
			break
		}
		fmt.Fprintf(&b, "\n  %v", s.Err)
	}
	return SampleError{fmt.Errorf(
		"data: %d bad samples in %s, more than the limit of %d:%s\nhint: fix or remove the files, or raise the limit: data.bad_file_limit in a recipe, SkipBad in Go",
		len(l.seen),
		l.source,
		l.limit,
		b.String(),
	)}
}

func (l *badList) sorted() []BadSample {
	all := make([]BadSample, 0, len(l.seen))
	for i, err := range l.seen {
		all = append(all, BadSample{i, err})
	}
	slices.SortFunc(all, func(a, b BadSample) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

func (l *badList) list() []BadSample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sorted()
}

func (l *badList) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}
