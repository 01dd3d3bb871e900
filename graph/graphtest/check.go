package graphtest

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gotrain/gotrain/graph/plan"
)

// Random gives n values in ±1 that depend on name only.
func Random(name string, n int) []float64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float64, n)
	for i := range v {
		v[i] = 2*r.Float64() - 1
	}
	return v
}

// CheckGrads compares every element of every parameter's gradient with the central difference of the output "loss". values sets inputs,
// parameters and states; a float one that is missing is random, the loss scale is 1. The first difference above tol, relative to the larger
// of 1 and the gradient, is the error. All is computed in float64 with a step of 1e-5; where calls run on the host, in float32 with a step
// of 1e-2.
func CheckGrads(g *plan.Graph, values map[string][]float64, tol float64) error {
	m, h := NewF64(g), 1e-5
	for _, c := range g.Calls {
		if c.Host != nil {
			m, h = New(g), 1e-2
		}
	}
	all := map[string][]float64{}
	for _, v := range m.G.Values {
		switch given, ok := values[v.Name]; {
		case v.Role == plan.Temp:
		case ok:
			all[v.Name] = given
		case v.Name == "loss_scale":
			all[v.Name] = []float64{1}
		case v.Desc.DType.IsFloat():
			all[v.Name] = Random(v.Name, int(v.Desc.Shape.Elems()))
		default:
			return fmt.Errorf("graphtest: no values for %q, %s", v.Name, v.Desc)
		}
	}
	loss := func() (float64, error) {
		for n, v := range all { // states too: a run changes them
			if err := m.Set(n, v...); err != nil {
				return 0, err
			}
		}
		if err := m.Run(); err != nil {
			return 0, err
		}
		l, err := m.Named("loss")
		if err != nil {
			return 0, err
		}
		return l[0], nil
	}
	if _, err := loss(); err != nil {
		return err
	}
	grads := map[string][]float64{}
	for _, t := range g.Trained {
		if t.Grad != plan.None { // frozen, or nothing depends on it
			grads[g.Values[t.Param].Name] = m.Get(t.Grad)
		}
	}
	if len(grads) == 0 {
		return fmt.Errorf("graphtest: no parameter has a gradient")
	}
	for _, n := range slices.Sorted(maps.Keys(grads)) {
		if err := checkParam(n, all, grads, loss, h, tol); err != nil {
			return err
		}
	}
	return nil
}

func checkParam(name string, all, grads map[string][]float64, loss func() (float64, error), h, tol float64) error {
	p := append([]float64(nil), all[name]...)
	keep := all[name]
	defer func() { all[name] = keep }()
	all[name] = p
	for i, x := range keep {
		p[i] = x + h
		up, err := loss()
		if err != nil {
			return err
		}
		p[i] = x - h
		down, err := loss()
		if err != nil {
			return err
		}
		p[i] = x
		want, got := (up-down)/(2*h), grads[name][i]
		if d := math.Abs(want - got); !(d <= tol*max(1, math.Abs(want))) {
			return fmt.Errorf("graphtest: gradient of %s[%d] is %.9g, central difference %.9g", name, i, got, want)
		}
	}
	return nil
}
