package confusion

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// whole is the largest number of classes whose matrix is printed as a whole. Of more classes the confused pairs are more readable.
const whole = 20

// WriteText prints the matrix for a terminal: rows are true classes, with their accuracy, columns predicted ones, by their number. Of more than 20 classes it
// prints the 30 pairs that are confused most often.
func (m *Matrix) WriteText(out io.Writer) error {
	if len(m.names) > whole {
		return m.writePairs(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "true \\ predicted\t")
	for j := range m.names {
		fmt.Fprintf(w, "%d\t", j)
	}
	fmt.Fprint(w, "accuracy\t\n")
	for i, c := range m.Classes() {
		fmt.Fprintf(w, "%s  %d\t", short(c.Name, 24), i)
		for j := range m.names {
			if n := m.At(i, j); n == 0 {
				fmt.Fprint(w, "·\t")
			} else {
				fmt.Fprintf(w, "%d\t", n)
			}
		}
		if c.Samples == 0 {
			fmt.Fprint(w, "-\t\n")
		} else {
			fmt.Fprintf(w, "%.1f %%\t\n", 100*c.Recall)
		}
	}
	return w.Flush()
}

func (m *Matrix) writePairs(out io.Writer) error {
	all := m.Mistakes()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "class\ttaken for\tsamples\t\n")
	for _, p := range all[:min(30, len(all))] {
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t\n", short(p.Class, 32), short(p.Predicted, 32), p.Samples, p.Of)
	}
	if n := len(all) - 30; n > 0 {
		fmt.Fprintf(w, "and %d more pairs\t\t\t\n", n)
	}
	return w.Flush()
}

// WriteClasses prints a line for each class: samples, accuracy (recall), precision, F1, and what the class is most often mistaken for.
func (m *Matrix) WriteClasses(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "class\tsamples\taccuracy\tprecision\tF1\tmost often mistaken for\n")
	for _, c := range m.Classes() {
		acc, wrong := "-", ""
		if c.Samples > 0 {
			acc = fmt.Sprintf("%.1f %%", 100*c.Recall)
		}
		if c.For > 0 {
			wrong = fmt.Sprintf("%s (%d)", short(c.Mistaken, 32), c.For)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%.1f %%\t%.3f\t%s\n", short(c.Name, 32), c.Samples, acc, 100*c.Precision, c.F1, wrong)
	}
	return w.Flush()
}

// WriteCSV writes the matrix with the classes as the first row and the first column.
func (m *Matrix) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	w.Write(append([]string{"true \\ predicted"}, m.names...)) // errors are kept and returned below
	for i, name := range m.names {
		row := []string{name}
		for j := range m.names {
			row = append(row, strconv.Itoa(m.At(i, j)))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// short cuts a name.
func short(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
