package images

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxClass is more than any data set's labels.
const maxClass = 1 << 20

// number gives labels to words. Words that are all numbers are the labels; others are names of classes, numbered in alphabetical order. Where classes are
// given, the words must be among them, as they are written or as numbers (007 is 7). bad receives the index of each word that has no label, with the reason.
func number(words, classes []string, bad func(i int, reason string)) ([]int32, []string) {
	labels := make([]int32, len(words))
	plain, numeric := make([]int, len(words)), true
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 {
			numeric = false
			break
		}
		plain[i] = n
	}
	if classes == nil {
		var good bool
		if classes, good = classesOf(words, plain, numeric, bad); !good {
			return nil, nil
		}
	}
	index := make(map[string]int32, len(classes))
	for i, c := range classes {
		index[c] = int32(i)
	}
	for i, w := range words {
		label, ok := index[w]
		if n, err := strconv.Atoi(w); !ok && err == nil && n >= 0 {
			label, ok = index[strconv.Itoa(n)]
		}
		if !ok {
			bad(i, fmt.Sprintf("label %q is not among the %d classes of the training set (%s)", w, len(classes), shorten(classes)))
			continue
		}
		labels[i] = label
	}
	return labels, classes
}

// classesOf lists the classes that the words name.
func classesOf(words []string, plain []int, numeric bool, bad func(int, string)) (classes []string, good bool) {
	if !numeric {
		classes = slices.Clone(words)
		slices.Sort(classes)
		return slices.Compact(classes), true
	}
	top := -1
	for i, n := range plain {
		if n >= maxClass {
			bad(i, fmt.Sprintf("label %d is not below %d", n, maxClass))
			return nil, false
		}
		top = max(top, n)
	}
	for n := range top + 1 {
		classes = append(classes, strconv.Itoa(n))
	}
	return classes, true
}

// problems collects what is wrong with a data set, so that all of it is reported at once.
type problems struct {
	all []problem
}

type problem struct {
	line int
	text string
}

func (p *problems) add(line int, format string, a ...any) {
	p.all = append(p.all, problem{line, fmt.Sprintf(format, a...)})
}

// err lists the problems in the order of lines, in at most as many lines as a user will read.
func (p *problems) err(place, hint string) error {
	if len(p.all) == 0 {
		return nil
	}
	const shown = 20
	slices.SortStableFunc(p.all, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var b strings.Builder
	for i, x := range p.all {
		if i == shown {
			fmt.Fprintf(&b, "\n  and %d more", len(p.all)-shown)
			break
		}
		fmt.Fprintf(&b, "\n  %s", x.text)
	}
	count := "a problem"
	if len(p.all) > 1 {
		count = fmt.Sprintf("%d problems", len(p.all))
	}
	return fmt.Errorf("images: %s has %s:%s\nhint: %s", place, count, b.String(), hint)
}
