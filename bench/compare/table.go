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
	names    []string
	settings []setting
	runs     map[setting]map[string][]result
}

func newTable(field []contestant) *table {
	t := &table{runs: map[setting]map[string][]result{}}
	for _, c := range field {
		t.names = append(t.names, c.name)
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
	s.imgS = pick(func(r result) float64 { return r.imgS })
	s.stepMS = pick(func(r result) float64 { return r.stepMS })
	s.rssMB = pick(func(r result) float64 { return r.rssMB })
	s.firstS = pick(func(r result) float64 { return r.firstS })
	s.disturbed = pick(func(r result) float64 { return r.disturbed })
	s.version = good[0].version
	s.low, s.high = good[0].imgS, good[0].imgS
	for _, r := range good {
		s.best, s.low, s.high = max(s.best, r.best), min(s.low, r.imgS), max(s.high, r.imgS)
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
	fmt.Fprintf(w, "ResNet-50 224x224\tcontestant\timg/s\tlow…high\tbest step\tstep ms\tRSS MB\tfirst step s\tothers\t%s is\t\n", t.names[0])
	for _, s := range t.settings {
		first, ok := summarise(t.runs[s][t.names[0]], limit)
		for _, n := range t.names {
			v, have := summarise(t.runs[s][n], limit)
			if !have {
				fmt.Fprintf(w, "%s b%d\t%s\t-\t\t\t\t\t\t\t\t\n", s, s.Batch, n)
				continue
			}
			ratio := ""
			if ok && n != t.names[0] {
				ratio = fmt.Sprintf("%.2fx", first.imgS/v.imgS)
			}
			mark := ""
			if v.spoiled {
				mark = "!"
			}
			fmt.Fprintf(w, "%s b%d\t%s\t%.2f%s\t%.2f…%.2f\t%.2f\t%.0f\t%s\t%s\t%.0f%%\t%s\t\n", s, s.Batch, strings.TrimSpace(n+" "+v.version), v.imgS, mark, v.low, v.high, v.best,
				v.stepMS, known(v.rssMB, "%.0f"), known(v.firstS, "%.1f"), v.disturbed, ratio)
		}
	}
	w.Flush()
	fmt.Fprintf(out, "medians over runs; images of all ranks; RSS of the largest rank; ! = every run had others on the machine for more than %.0f %%\n", limit)
}

func known(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
