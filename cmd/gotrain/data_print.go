package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/train/data/survey"
	"github.com/gotrain/gotrain/train/foreign"
)

// printCheck prints what is wrong with the samples.
func (a *app) printCheck(r *survey.Report) error {
	clean := true
	for _, s := range r.Sets {
		fmt.Fprintf(a.out, "%s: %s\n", s.Name, counts(&s))
		for _, list := range []struct {
			what string
			of   []survey.Broken
		}{{"cannot be read", s.Broken}, {"is damaged, but readable", s.Damaged}} {
			for _, b := range list.of {
				reason, _, _ := strings.Cut(strings.TrimPrefix(b.Reason, b.Path+": "), "\n")
				fmt.Fprintf(a.out, "  %s %s: %s\n", foreign.Line(b.Path), list.what, reason)
				clean = false
			}
		}
	}
	var sets, labels int
	for _, d := range r.Duplicates {
		what := "equal"
		switch {
		case d.Sets && d.Labels:
			what = "equal, in different splits and with different labels"
		case d.Sets:
			what = "equal, in different splits"
		case d.Labels:
			what = "equal, with different labels"
		}
		if d.Sets {
			sets++
		}
		if d.Labels {
			labels++
		}
		fmt.Fprintf(a.out, "%s:\n", what)
		for _, c := range d.Samples {
			fmt.Fprintf(a.out, "  %s  %s\n", c.Set, foreign.Line(c.Path))
		}
	}
	switch {
	case len(r.Duplicates) > 0:
		fmt.Fprintf(a.out, "%s of equal samples, %d across splits, %d with different labels\n", several(len(r.Duplicates), "group"), sets, labels)
	case clean:
		fmt.Fprintln(a.out, "no sample is broken, damaged or twice there")
	}
	return nil
}

// several is a number of things: 1 group, 2 groups.
func several(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return amount.Count(n) + " " + what
}

// counts describes a set in a line.
func counts(s *survey.SetReport) string {
	out := fmt.Sprintf("%s, %s", several(s.Samples, "sample"), amount.Bytes(s.Bytes))
	if n := len(s.Classes); n > 0 {
		out += fmt.Sprintf(", %s classes", amount.Count(n))
	}
	if n := len(s.Broken); n > 0 {
		out += fmt.Sprintf(", %s broken", amount.Count(n))
	}
	return out
}

// printStats prints numbers.
func (a *app) printStats(r *survey.Report) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for i, s := range r.Sets {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(w, "%s\t%s\n", s.Name, counts(&s))
		if len(s.Formats) > 0 {
			var formats []string
			for f, n := range s.Formats {
				formats = append(formats, fmt.Sprintf("%s %s", amount.Count(n), f))
			}
			slices.Sort(formats)
			fmt.Fprintf(w, "formats\t%s\n", strings.Join(formats, ", "))
		}
		if s.Width != nil {
			fmt.Fprintf(w, "width\t%d to %d, median %d\n", s.Width.Min, s.Width.Max, s.Width.Median)
			fmt.Fprintf(w, "height\t%d to %d, median %d\n", s.Height.Min, s.Height.Max, s.Height.Median)
		}
		if len(s.Mean) > 0 {
			fmt.Fprintf(w, "mean\t%s\nstd\t%s\n", channelList(s.Mean), channelList(s.Std))
		}
		if n := len(r.Duplicates); n > 0 && i == 0 {
			fmt.Fprintf(w, "duplicates\t%d groups (gotrain data check lists them)\n", n)
		}
		if x := s.Imbalance(); x > 0 {
			fmt.Fprintf(w, "balance\tthe largest class has %.3g times the samples of the smallest\n", x)
		}
		top := 1
		for _, c := range s.Classes {
			top = max(top, c.Samples)
		}
		for _, c := range s.Classes {
			fmt.Fprintf(w, "  %s\t%d\t%s\n", c.Name, c.Samples, bar(float64(c.Samples), float64(top)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// channelList prints as a recipe takes them.
func channelList(v []float64) string {
	var s []string
	for _, x := range v {
		s = append(s, fmt.Sprintf("%.4f", x))
	}
	return "[" + strings.Join(s, ", ") + "]"
}
