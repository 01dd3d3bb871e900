package doctor

import (
	"regexp"
	"strconv"
	"strings"
)

// version is a version in parts, for comparison. A word such as RC1 is older than any number in its place, and than nothing.
type version []part

type part struct{ word, n int }

var (
	wordOrder = map[string]int{"alpha": -3, "beta": -2, "rc": -1}
	partForm  = regexp.MustCompile(`^([a-z]*)([0-9]*)`)
)

// parseVersion reads 7.7.0.6.236, 8.1.RC1, 25.0.rc1.1.
func parseVersion(s string) version {
	var v version
	for p := range strings.SplitSeq(strings.ToLower(strings.Trim(strings.TrimSpace(s), ".")), ".") {
		g := partForm.FindStringSubmatch(p)
		n, _ := strconv.Atoi(g[2])
		v = append(v, part{wordOrder[g[1]], n})
	}
	return v
}

// compare returns a negative number if a is older than b.
func (a version) compare(b version) int {
	for i := range max(len(a), len(b)) {
		var p, q part
		if i < len(a) {
			p = a[i]
		}
		if i < len(b) {
			q = b[i]
		}
		if p.word != q.word {
			return p.word - q.word
		}
		if p.n != q.n {
			return p.n - q.n
		}
	}
	return 0
}

// upTo reports whether v is not newer than hi, where parts that hi does not have do not count: 7.7.0.1 is up to 7.7.
func (a version) upTo(hi version) bool { return a[:min(len(a), len(hi))].compare(hi) <= 0 }

var (
	bracket = regexp.MustCompile(`\[\s*([^,\[\]]+?)\s*,\s*([^,\[\]]+?)\s*\]`)
	bound   = regexp.MustCompile(`([<>=]+)\s*([0-9][0-9A-Za-z.]*)`)
)

// within reports whether a version lies in ranges such as "[7.0.0,7.7.99],[24.0,24.0.]" or ">=7.6, <=7.7". known is false if ranges has neither form.
func within(v, ranges string) (in, known bool) {
	a := parseVersion(v)
	for _, g := range bracket.FindAllStringSubmatch(ranges, -1) {
		known = true
		if a.compare(parseVersion(g[1])) >= 0 && a.upTo(parseVersion(g[2])) {
			return true, true
		}
	}
	if known {
		return false, true
	}
	in = true
	for _, g := range bound.FindAllStringSubmatch(ranges, -1) {
		known = true
		b := parseVersion(g[2])
		switch g[1] {
		case ">=":
			in = in && a.compare(b) >= 0
		case ">":
			in = in && a.compare(b) > 0
		case "<=":
			in = in && a.upTo(b)
		case "<":
			in = in && a.compare(b) < 0
		default:
			in = in && a.compare(b) == 0
		}
	}
	return in && known, known
}
