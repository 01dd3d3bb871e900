package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/gotrain/gotrain/train"
)

// printParameters lists the parameters by the names that patterns in recipes are matched against.
func (a *app) printParameters(all []train.ParamItem) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "parameter\tshape\tlearning rate\tweight decay\tgroup")
	for _, p := range all {
		group := p.Group
		if group == "" {
			group = "-"
		}
		if p.Frozen {
			fmt.Fprintf(w, "%s\t%v\tfrozen\t-\t%s\n", p.Name, p.Shape, group)
			continue
		}
		fmt.Fprintf(w, "%s\t%v\tx %.4g\t%.4g\t%s\n", p.Name, p.Shape, p.LRFactor, p.WeightDecay, group)
	}
	return w.Flush()
}
