package kernels

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Text is the result for people: a table, what was skipped, and each failure with its operators.
func (r *Result) Text() string {
	var b strings.Builder
	passed, failed, skipped := 0, 0, 0
	for _, row := range r.Rows {
		passed, failed, skipped = passed+row.Passed, failed+row.Failed, skipped+row.Skipped
	}
	fmt.Fprintf(&b, "kernels of %s (%s) against the plain Go kernels\n", r.Device, r.Detail)
	fmt.Fprintf(&b, "%d cases passed, %d failed, %d skipped, in %v\n\n", passed, failed, skipped, r.Took.Round(time.Second/10))
	r.table(&b)
	for _, l := range r.Left {
		fmt.Fprintf(&b, "\nnot run: %s\n", l)
	}
	r.reasons(&b)
	r.failures(&b)
	return b.String()
}

// shown is how many failures of a kind, type and mode are listed; the rest is in the JSON form.
const shown = 2

func (r *Result) failures(b *strings.Builder) {
	n := map[string]int{}
	for _, f := range r.Failures {
		what, _, _ := strings.Cut(f.Case, ",")
		what += " (" + f.Mode + ")"
		if n[what]++; n[what] > shown {
			continue
		}
		fmt.Fprintf(b, "\nFAILED %s (%s)\n  %s\n", f.Case, f.Mode, indent(strings.TrimSpace(f.Error)))
		if f.Program != "" {
			fmt.Fprintf(b, "  %s\n", indent(strings.TrimSpace(f.Program)))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(n)) {
		if n[what] > shown {
			fmt.Fprintf(b, "\n%d more of %s failed; --json and --report list them\n", n[what]-shown, what)
		}
	}
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

// table has a line for each kind and type, with the cases and the worst error of each mode.
func (r *Result) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "kind\ttype")
	for _, m := range r.Modes {
		fmt.Fprintf(w, "\t%s", m.Name)
	}
	fmt.Fprint(w, "\n")
	type key struct{ kind, dtype string }
	cells := map[key]map[string]Row{}
	var order []key
	for _, row := range r.Rows {
		k := key{row.Kind, row.Type}
		if cells[k] == nil {
			cells[k] = map[string]Row{}
			order = append(order, k)
		}
		cells[k][row.Mode] = row
	}
	for _, k := range order {
		fmt.Fprintf(w, "%s\t%s", k.kind, k.dtype)
		for _, m := range r.Modes {
			row, ok := cells[k][m.Name]
			fmt.Fprintf(w, "\t%s", cell(row, ok))
		}
		fmt.Fprint(w, "\n")
	}
	_ = w.Flush() // a strings.Builder takes everything
	b.WriteString("\nEach cell: cases, and the largest error as a part of what is allowed; = is equal.\n")
}

func cell(row Row, ok bool) string {
	switch {
	case !ok:
		return "not run"
	case row.Failed > 0:
		return fmt.Sprintf("FAILED %d of %d", row.Failed, row.Failed+row.Passed)
	case row.Passed == 0:
		return "skipped"
	case row.Worst == 0:
		return fmt.Sprintf("%d =", row.Passed)
	}
	return fmt.Sprintf("%d %.2f", row.Passed, row.Worst)
}

// reasons lists why cases were skipped, each reason once.
func (r *Result) reasons(b *strings.Builder) {
	n := map[string]int{}
	kinds := map[string][]string{}
	for _, row := range r.Rows {
		for _, why := range row.Reasons {
			n[why]++
			if !slices.Contains(kinds[why], row.Kind) {
				kinds[why] = append(kinds[why], row.Kind)
			}
		}
	}
	var l []string
	for why := range n {
		l = append(l, why)
	}
	slices.SortFunc(l, func(a, b string) int { return cmp.Compare(kinds[a][0]+a, kinds[b][0]+b) })
	for i, why := range l {
		if i == 0 {
			b.WriteString("\nskipped:\n")
		}
		fmt.Fprintf(b, "  %s: %s\n", strings.Join(kinds[why], ", "), why)
	}
}
