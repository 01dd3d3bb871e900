package plan_test

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// Plans y = relu(relu(x) * w): three calls, of which the device's kernels need no memory but the caller's and one temporary.
func ExampleBuild() {
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()

	var g plan.Graph
	v := npu.D(npu.F32, 16, 16)
	x := g.Add(plan.Value{Name: "x", Desc: v, Role: plan.Input})
	w := g.Add(plan.Value{Name: "w", Desc: v, Role: plan.Param})
	a, b, y := g.Add(plan.Value{Desc: v}), g.Add(plan.Value{Desc: v}), g.Add(plan.Value{Desc: v})
	unused := g.Add(plan.Value{Desc: v})
	g.Calls = []plan.Call{
		{Kind: npu.Relu, In: []plan.ID{x}, Out: []plan.ID{a}, Name: "first"},
		{Kind: npu.Unary, Attrs: npu.Attrs{"fn": "exp"}, In: []plan.ID{x}, Out: []plan.ID{unused}, Name: "nobody wants this"},
		{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "mul"}, In: []plan.ID{a, w}, Out: []plan.ID{b}, Name: "scale"},
		{Kind: npu.Relu, In: []plan.ID{b}, Out: []plan.ID{y}, Name: "last"},
	}
	g.Outputs = []plan.Output{{Name: "y", Value: y}}

	p, err := plan.Build(&g, dev, plan.Options{NoFuse: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Steps {
		fmt.Println(s.Name, s.Op.Kind)
	}
	fmt.Println(p.Arena, "bytes of temporaries")
	// Output:
	// first relu
	// scale binary
	// last relu
	// 1024 bytes of temporaries
}
