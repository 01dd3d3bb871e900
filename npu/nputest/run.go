package nputest

import (
	"context"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// T is what Run needs of testing.T: so a program that uses Check does not link package testing.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Context() context.Context
}

// Run checks every kind for all types that the device computes in. Each failing case is an error of t; kinds that the device does not have are logged.
func Run(t T, dev npu.Device, o Options) {
	t.Helper()
	types := o.Types
	if types == nil {
		types = dev.Info().Compute
	}
	for _, kind := range Kinds() {
		for _, act := range types {
			results, err := Check(t.Context(), dev, o.Cases(kind, act), o)
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			report(t, kind, act, results)
		}
	}
	if list := Lacking(dev); len(list) > 0 {
		t.Logf("%s does not have the kinds %v", dev.Info().Name, list)
	}
}

// report logs one line for a kind and type, and each failure.
func report(t T, kind string, act npu.DType, results []Result) {
	t.Helper()
	var n [3]int
	worst, impls := 0.0, []string{}
	for _, r := range results {
		if n[r.Status]++; r.Status == Failed {
			if n[Failed] <= 5 {
				t.Errorf("%v", r)
			}
			continue
		}
		worst = max(worst, r.Worst)
		if len(r.Impl) > 0 && !slices.Contains(impls, r.Impl[len(r.Impl)-1]) {
			impls = append(impls, r.Impl[len(r.Impl)-1])
		}
	}
	if n[Failed] > 5 {
		t.Errorf("%s %s: %d more cases failed", kind, act, n[Failed]-5)
	}
	if len(results) > 0 {
		t.Logf("%s %s: %d passed, %d failed, %d skipped; %.2f of the bound; by %v", kind, act, n[Passed], n[Failed], n[Skipped], worst, impls)
	}
}

// Cases returns the cases of a kind as the options want them.
func (o Options) Cases(kind string, act npu.DType) []Case {
	seed, n := o.Seed, o.N
	if seed == 0 {
		seed = 1
	}
	if n == 0 {
		n = Generated
	}
	cases := Generate(kind, act, seed, max(n, 0))
	list := cases
	for _, l := range o.Layouts {
		for _, c := range cases {
			if c.free() {
				list = append(list, c.In(l))
			}
		}
	}
	return list
}

// free reports whether the device may choose the layout of an activation.
func (c Case) free() bool {
	return slices.ContainsFunc(c.Tensors, func(t Tensor) bool { return t.Values != nil && t.Desc.Layout == npu.Any && len(t.Desc.Shape) == 4 })
}

// Lacking lists the kinds that a device has with no attributes of any case.
func Lacking(dev npu.Device) []string {
	var list []string
	for _, kind := range Kinds() {
		has := false
		for _, act := range []npu.DType{npu.F32, npu.BF16} {
			for _, c := range Cases(kind, act) {
				last := c.Calls[len(c.Calls)-1]
				has = has || dev.Has(kind, last.Attrs)
			}
		}
		if !has {
			list = append(list, kind)
		}
	}
	return list
}
