// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// table collects results by setting and contestant.
type table struct {
	title    string
	unit     string
	names    []string
	family   map[string]string // of a name
	settings []setting
	runs     map[setting]map[string][]result
}

func newTable(title, unit string, field []contestant) *table {
	t := &table{title: title, unit: unit, family: map[string]string{}, runs: map[setting]map[string][]result{}}
	for _, c := range field {
		t.names = append(t.names, c.name)
		t.family[c.name] = c.family
	}
	return t
}

func (t *table) add(s setting, name string, r result) {
	if t.runs[s] == nil {
		t.runs[s] = map[string][]result{}
		t.settings = append(t.settings, s)
	}
	t.runs[s][name] = append(t.runs[s][name], r)
}

// summary of several runs of one contestant. Runs that others disturbed count only where there are no better ones.
type summary struct {
	result
	low, high float64
	spoiled   bool
	runs      int
}

func summarise(rs []result, limit float64) (summary, bool) {
	good := slices.DeleteFunc(slices.Clone(rs), func(r result) bool { return r.disturbed > limit })
	s := summary{spoiled: len(good) == 0}
	if s.spoiled {
		good = rs
	}
	if s.runs = len(good); s.runs == 0 {
		return s, false
	}
	pick := func(f func(result) float64) float64 {
		var v []float64
		for _, r := range good {
			v = append(v, f(r))
		}
		return median(v)
	}
	s.rate = pick(func(r result) float64 { return r.rate })
	s.stepMS = pick(func(r result) float64 { return r.stepMS })
	s.rssMB = pick(func(r result) float64 { return r.rssMB })
	s.pssMB = pick(func(r result) float64 { return r.pssMB })
	s.firstS = pick(func(r result) float64 { return r.firstS })
	s.util = pick(func(r result) float64 { return r.util })
	s.disturbed = pick(func(r result) float64 { return r.disturbed })
	s.version = good[0].version
	s.low, s.high = good[0].rate, good[0].rate
	for _, r := range good {
		s.best, s.low, s.high = max(s.best, r.best), min(s.low, r.rate), max(s.high, r.rate)
	}
	return s, true
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// print shows a row a contestant, with the ratio of the first contestant (gotrain) to it.
func (t *table) print(out io.Writer, limit float64) {
	if len(t.settings) == 0 {
		fmt.Fprintln(out, "no step was measured")
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tcontestant\t%s\tlow…high\tbest step\tstep ms\tRSS MB\tPSS MB\tfirst step s\tat work\tothers\t%s is\t\n", t.title, t.unit, t.names[0])
	for _, s := range t.settings {
		first, ok := summarise(t.runs[s][t.names[0]], limit)
		for _, n := range t.names {
			v, have := summarise(t.runs[s][n], limit)
			if !have {
				fmt.Fprintf(w, "%s\t%s\t-\t\t\t\t\t\t\t\t\t\t\n", s.label(), n)
				continue
			}
			ratio := ""
			if ok && n != t.names[0] {
				ratio = fmt.Sprintf("%.2fx", first.rate/v.rate) + t.counts(s, n, limit)
			}
			mark := ""
			if v.spoiled {
				mark = "!"
			}
			fmt.Fprintf(
				w,
				"%s\t%s\t%s%s\t%s…%s\t%s\t%.0f\t%s\t%s\t%s\t%s\t%.0f%%\t%s\t\n",
				s.label(),
				strings.TrimSpace(n+" "+v.version),
				rate(v.rate),
				mark,
				rate(v.low),
				rate(v.high),
				rate(v.best),
				v.stepMS,
				known(v.rssMB, "%.0f"),
				known(v.pssMB, "%.0f"),
				known(v.firstS, "%.1f"),
				known(100*v.util, "%.1f%%"),
				v.disturbed,
				ratio,
			)
		}
	}
	w.Flush()
	fmt.Fprintf(
		out,
		"medians over runs; %s of all ranks; RSS of the largest rank, and PSS, which divides what several processes map among them; at work = part of the "+
			"step in which the device computed; * = the faster way to run this peer, the one that counts; ! = every run had others "+
			"on the machine for more than %.0f %%\n",
		t.unit,
		limit,
	)
}

// counts marks the fastest of the ways to run one peer: the one to quote.
func (t *table) counts(s setting, name string, limit float64) string {
	mine, _ := summarise(t.runs[s][name], limit)
	others := 0
	for _, n := range t.names {
		if v, have := summarise(t.runs[s][n], limit); have && n != name && t.family[n] != "" && t.family[n] == t.family[name] {
			if others++; v.rate > mine.rate {
				return ""
			}
		}
	}
	if others == 0 {
		return ""
	}
	return " *"
}

func known(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// rate prints items a second.
func rate(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
