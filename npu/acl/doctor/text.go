package doctor

import (
	"fmt"
	"strings"
)

// Style is how a report is printed.
type Style struct {
	Colour bool
	Brief  bool // without what is ok
}

var colours = []string{"\x1b[32m", "\x1b[36m", "\x1b[33m", "\x1b[31m"}

// Text is the report for people: groups, one line a finding, with its remedy below.
func (r *Report) Text(s Style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "gotrain doctor, %s\n%s\n", r.Program, r.Summary)
	group := ""
	for _, f := range r.Findings {
		if s.Brief && f.Severity == OK {
			continue
		}
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		word := fmt.Sprintf("%-7s", f.Severity)
		if s.Colour {
			word = colours[f.Severity] + word + "\x1b[0m"
		}
		fmt.Fprintf(&b, "  %s  %s", word, f.What)
		if f.Where != "" && f.Severity != OK {
			fmt.Fprintf(&b, " (%s)", f.Where)
		}
		b.WriteByte('\n')
		if f.Remedy != "" {
			fmt.Fprintf(&b, "           → %s\n", f.Remedy)
		}
	}
	for _, section := range r.sections() {
		fmt.Fprintf(&b, "\n%s", clean(section.Text()))
	}
	fmt.Fprintf(&b, "\n%s\n", r.verdict())
	return b.String()
}

// clean is printable for a text of several lines.
func clean(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l[:len(l)-len(strings.TrimLeft(l, " "))]+printable(l), " ")
	}
	return strings.Join(lines, "\n")
}

func (r *Report) verdict() string {
	count := func(s Severity, word string) string {
		n := r.Count(s)
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	return strings.Join([]string{count(Error, "error"), count(Warning, "warning"), count(Note, "note")}, ", ") + fmt.Sprintf("; %d checks are ok", r.Count(OK))
}
