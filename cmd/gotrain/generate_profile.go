package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/gotrain/gotrain/graph/roofline"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/generate"
	"github.com/gotrain/gotrain/train/telemetry"
)

// equalKernels are the launches of a token that do the same to other tensors.
type equalKernels struct {
	kind, impl, shape string
	count             int
	bytes             int64
	us                []float64 // by token
}

// printTokenTime prints where the time of a token goes, from the samples of a profile: equal kernels in one line, the slowest first, then what passes between
// kernels. Times are medians over tokens, so that what disturbs some of them does not count. Without a profile it prints nothing.
func (a *app) printTokenTime(s generate.Stats) error {
	tokens := s.ByStep()
	if len(tokens) < 2 {
		return nil
	}
	lines := map[string]*equalKernels{}
	var whole, sums []float64
	for i, token := range tokens {
		sum := 0.0
		for _, k := range token {
			o := k.Launch.Kernel().Op()
			l := lines[o.String()]
			if l == nil {
				l = &equalKernels{kind: roofline.KindOf(o), impl: k.Launch.Kernel().Impl(), shape: roofline.Shapes(o), us: make([]float64, len(tokens))}
				lines[o.String()] = l
			}
			if i == 0 {
				l.count++
				l.bytes += roofline.CostOf(o).Bytes()
			}
			l.us[i] += k.Dur.Seconds() * 1e6
			sum += k.Dur.Seconds() * 1e6
		}
		sums = append(sums, sum)
		if i > 0 {
			whole = append(whole, (token[0].Begin-tokens[i-1][0].Begin).Seconds()*1e6)
		}
	}
	total, busy := telemetry.Median(whole), telemetry.Median(sums)
	all := slices.Collect(maps.Values(lines))
	slices.SortFunc(all, func(a, b *equalKernels) int {
		return cmp.Or(cmp.Compare(telemetry.Median(b.us), telemetry.Median(a.us)), cmp.Compare(a.shape, b.shape))
	})
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kernel\ta token\tus\tshare\tGB/s\timplementation, shape")
	for _, l := range all {
		us, rate := telemetry.Median(l.us), "-"
		if l.kind != npu.AttentionCached && us > 0 { // what that reads grows with the text
			rate = fmt.Sprintf("%.1f", float64(l.bytes)/us/1e3)
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f %%\t%s\t%s  %s\n", l.kind, l.count, us, 100*us/total, rate, l.impl, l.shape)
	}
	rest := max(0, total-busy)
	fmt.Fprintf(w, "between kernels\t\t%.1f\t%.1f %%\t\tlaunches, and the choice of the next token\n", rest, 100*rest/total)
	w.Flush()
	fmt.Fprintf(&b, "a token takes %.1f us, of which its %d kernels %.1f us (medians of %d tokens)\n", total, len(tokens[0]), busy, len(tokens))
	_, err := a.err.Write(b.Bytes())
	return err
}
