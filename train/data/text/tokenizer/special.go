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
	skip           bool // hides other tokens, but stays text
}

// matcher finds fixed tokens in text: the leftmost, and of those the longest.
type matcher struct {
	sorted []fixed
	first  [256]bool // bytes that begin one
}

// newMatcher is nil where there is nothing to find.
func newMatcher(list []fixed) *matcher {
	list = slices.DeleteFunc(slices.Clone(list), func(f fixed) bool { return f.text == "" })
	if !slices.ContainsFunc(list, func(f fixed) bool { return !f.skip }) {
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

// finder goes through a text from token to token.
type finder struct {
	m    *matcher
	text string
	from int // behind the last token and the space that it took
	at   int // behind the last token itself: the next one may begin in the space that it took
}

func (m *matcher) find(text string) finder { return finder{m: m, text: text} }

// next is the text before the next token, where it begins, and the token; nil at the end.
func (f *finder) next() (gap string, begin int, token *fixed) {
	text, from := f.text, f.from
	for i := f.at; i < len(text); i++ {
		if !f.m.first[text[i]] {
			continue
		}
		t := f.m.longest(text[i:])
		if t == nil {
			continue
		}
		start, stop := i, i+len(t.text)
		if t.skip || t.word && (wordBefore(text[:start]) || wordAfter(text[stop:])) {
			i = stop - 1
			continue
		}
		f.at = stop
		if t.lstrip {
			start = max(from, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if t.rstrip {
			stop = len(text) - len(strings.TrimLeftFunc(text[stop:], unicode.IsSpace))
		}
		f.from = stop
		if start >= stop { // nothing is left of it: the token before took the space that it is
			from, i = stop, f.at-1
			continue
		}
		return text[from:max(from, start)], from, t
	}
	f.at, f.from = len(text), len(text)
	return text[from:], from, nil
}

func wordBefore(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && wordRune(r)
}

func wordAfter(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && wordRune(r)
}

// wordRunes is \w of UTS #18, as Rust's regular expressions have it.
var wordRunes = []*unicode.RangeTable{unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control}

func wordRune(r rune) bool { return r != utf8.RuneError && unicode.In(r, wordRunes...) }
