package ref

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// Call is one execution of an op of a registered kind. It has passed kind.Check. Slices of inputs and outputs are the call's own memory: an output may lie
// where an input does, because outputs are stored when the kernel has returned.
type Call struct{ c *call }

// Register adds the kernel of a kind that package kind knows; called from init. Besides the device ref, the device cpu executes it, in plain layouts.
// A kind that has a kernel already is a bug of the program and panics.
func Register(name string, kernel func(c Call) error) {
	if bodies[name] != nil || name == "" || kernel == nil {
		panic(fmt.Sprintf("ref: kind %q has a kernel already, or the kernel is nil", name))
	}
	bodies[name] = func(c *call) error { return kernel(Call{c}) }
}

// Op is the op with its attributes and the descriptions of its arguments, in plain layout.
func (c Call) Op() npu.Op { return c.c.op }

// In is input i as float64, row-major. The kernel may change it.
func (c Call) In(i int) []float64 { return c.c.in(i) }

// Ints is input i as integers, for types that are no floats.
func (c Call) Ints(i int) []int64 {
	d := c.c.op.In[i]
	x := make([]int64, d.Shape.Elems())
	for j := range x {
		x[j] = loadInt(c.c.args[i], j, d.DType)
	}
	return x
}

// Out is output i, filled with zeros at first. It is rounded to its type when the kernel has returned. An output that nobody wants has memory too, unless it
// is missing at the end of the op's list; see Wants.
func (c Call) Out(i int) []float64 { return c.c.out(i) }

// Wants reports whether output i is stored anywhere.
func (c Call) Wants(i int) bool { return i < len(c.c.op.Out) && c.c.rawOut(i) != nil }

// Parallel calls fn for 0 to n-1 from several goroutines. Calls must be independent of each other.
func (c Call) Parallel(n int, fn func(i int)) { c.c.parallel(n, fn) }
