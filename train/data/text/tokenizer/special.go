package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fixed is a token that is found in text as a whole and never made by merges.
type fixed struct {
	text           string
	id             int32
	word           bool // not within a longer word
	lstrip, rstrip bool // takes the space beside it
}

// matcher finds fixed tokens in text: the leftmost, and of those the longest.
type matcher struct {
	sorted []fixed
	first  [256]bool // bytes that begin one
}

// newMatcher is nil where there is nothing to find.
func newMatcher(list []fixed) *matcher {
	list = slices.DeleteFunc(slices.Clone(list), func(f fixed) bool { return f.text == "" })
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b fixed) int { return strings.Compare(a.text, b.text) })
	list = slices.CompactFunc(list, func(a, b fixed) bool { return a.text == b.text })
	m := &matcher{sorted: list}
	for _, f := range list {
		m.first[f.text[0]] = true
	}
	return m
}

// longest is the longest token that text begins with. It narrows the sorted list byte by byte, so many tokens cost no more than few.
func (m *matcher) longest(text string) *fixed {
	var best *fixed
	lo, hi := 0, len(m.sorted)
	for d := 0; lo < hi; d++ {
		if len(m.sorted[lo].text) == d {
			best = &m.sorted[lo]
			lo++
		}
		if d == len(text) {
			break
		}
		c := text[d]
		part := m.sorted[lo:hi]
		from, _ := slices.BinarySearchFunc(part, c, func(f fixed, c byte) int { return int(f.text[d]) - int(c) })
		to, _ := slices.BinarySearchFunc(part, int(c)+1, func(f fixed, c int) int { return int(f.text[d]) - c })
		lo, hi = lo+from, lo+to
	}
	return best
}

// next finds the first token in text[from:]; f is nil at the end.
func (m *matcher) next(text string, from int) (start, stop int, f *fixed) {
	for i := from; i < len(text); i++ {
		if !m.first[text[i]] {
			continue
		}
		f := m.longest(text[i:])
		if f == nil {
			continue
		}
		start, stop := i, i+len(f.text)
		if f.word && (wordBefore(text[:start]) || wordAfter(text[stop:])) {
			i = stop - 1
			continue
		}
		if f.lstrip {
			start = from + len(strings.TrimRightFunc(text[from:start], unicode.IsSpace))
		}
		if f.rstrip {
			stop = len(text) - len(strings.TrimLeftFunc(text[stop:], unicode.IsSpace))
		}
		return start, stop, f
	}
	return len(text), len(text), nil
}

func wordBefore(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && wordRune(r)
}

func wordAfter(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && wordRune(r)
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' }
