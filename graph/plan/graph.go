package plan

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// ID names a Value of a Graph: its index in Graph.Values.
type ID int

// None is the ID of no value: an output that was not requested, a parameter without a gradient.
const None ID = -1

// Role says who owns a value's memory and when it changes.
type Role uint8

const (
	// Temp is made and consumed within one run; it lives in the arena.
	Temp Role = iota
	// Input is written by the caller before each run.
	Input
	// Param is trained: the optimizer writes it between runs.
	Param
	// State is updated in place by the program (running statistics); it is saved in checkpoints.
	State
)

func (r Role) String() string { return [...]string{"temp", "input", "param", "state"}[r] }

// Value is one tensor of the graph.
type Value struct {
	Name string // full name for Input, Param, State; the producing layer's name or "" for Temp
	Desc npu.Desc
	Role Role
}

// Call is one op of the graph, in execution order. Out may have None entries.
type Call struct {
	Kind  string
	Attrs npu.Attrs
	In    []ID
	Out   []ID
	Name  string // scope path of the layer that made it, "layer1.0.conv1"
	Block string // the repeating part that it belongs to (Recompute), "" where none
	Back  bool   // belongs to the backward pass
	// Host, where not nil, runs the call on the host instead of a device kernel: plain float32/int memory in, plain out.
	Host func(in, out [][]byte) error
}

// Trained is a parameter and the value that is its gradient. Several parameters may share one gradient value.
type Trained struct {
	Param ID
	Grad  ID // None: the loss does not depend on it
}

// Graph is what a model was lowered to: values and calls, indexed by small integers. It is plain data.
type Graph struct {
	Values  []Value
	Calls   []Call
	Trained []Trained // in declaration order
	// Outputs are the values that the caller reads after a run (loss, count, metrics), by name in a fixed order.
	Outputs []Output
}

// Output is a value that must survive the run.
type Output struct {
	Name  string
	Value ID
}

// Add appends a value and returns its ID.
func (g *Graph) Add(v Value) ID {
	g.Values = append(g.Values, v)
	return ID(len(g.Values) - 1)
}

// Check verifies that the graph is well formed: every input is made before it is used, nothing is made twice, descs
// are plain. It is cheap and run after each pass in tests.
func (g *Graph) Check() error {
	made := make([]bool, len(g.Values))
	for i, v := range g.Values {
		made[i] = v.Role != Temp
		if v.Desc.DType == npu.Invalid {
			return fmt.Errorf("plan: value %d %q has no dtype", i, v.Name)
		}
	}
	for ci, c := range g.Calls {
		for _, in := range c.In {
			if in < 0 || int(in) >= len(g.Values) {
				return fmt.Errorf("plan: call %d %s %q: input %d does not exist", ci, c.Kind, c.Name, in)
			}
			if !made[in] {
				return fmt.Errorf("plan: call %d %s %q: input %d %q is used before it is made", ci, c.Kind, c.Name, in, g.Values[in].Name)
			}
		}
		for _, out := range c.Out {
			if out == None {
				continue
			}
			if made[out] && g.Values[out].Role == Temp {
				return fmt.Errorf("plan: call %d %s %q: value %d is made twice", ci, c.Kind, c.Name, out)
			}
			made[out] = true
		}
	}
	for _, o := range g.Outputs {
		if !made[o.Value] {
			return fmt.Errorf("plan: output %q is never made", o.Name)
		}
	}
	for _, t := range g.Trained {
		if t.Grad != None && !made[t.Grad] {
			return fmt.Errorf("plan: gradient of %q is never made", g.Values[t.Param].Name)
		}
	}
	return nil
}
