package op

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Ref is a value in a graph under construction. Only the graph package knows what is behind it.
type Ref interface {
	// Desc is shape and dtype of the value, always in the plain layout.
	Desc() npu.Desc
}

// Tape is what a gradient rule builds with: it adds a call to the graph and returns its outputs.
type Tape interface {
	Apply(kind string, attrs npu.Attrs, in ...Ref) ([]Ref, error)
}

// Call is one use of a kind in a graph, as a gradient rule sees it.
type Call struct {
	Attrs npu.Attrs
	In    []Ref
	Out   []Ref // Out[0] is the differentiable output
	DOut  Ref   // gradient of the loss with respect to Out[0]
}

// Class says how mixed precision treats an argument.
type Class uint8

const (
	// Act follows the compute dtype.
	Act Class = iota
	// Full stays float32: statistics, losses, gradients of parameters, biases, scales.
	Full
	// Keep is never cast: integers, indices, seeds.
	Keep
)

// Kind is an op kind as data. Adding an op is one file with such a value, a row in npu/kinds.go, and an implementation in each device.
type Kind struct {
	Name string
	// Infer checks attributes and inputs and gives the outputs. Its error names what is wrong, not where: the builder adds the layer.
	Infer func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error)
	// Grad builds the gradients of the inputs; a nil entry is "no gradient". A nil Grad: the kind is not differentiable.
	Grad func(t Tape, c Call) ([]Ref, error)
	// DiffWRT says which inputs have a gradient, given attributes and number of inputs. nil: all float inputs.
	DiffWRT func(a npu.Attrs, n int) []bool
	// FLOPs counts floating-point operations (a multiply-add is two). nil: one per output element.
	FLOPs func(o npu.Op) int64
	// Classes give mixed precision's treatment of inputs and outputs; the last entry repeats. nil: all Act.
	In, Out []Class
	// State maps output index to input index for state that is updated in place (running statistics).
	State map[int]int
	// InPlace lists pairs {output, input} that may share memory, where the call has such an output and input.
	InPlace [][2]int
	// ZeroGrad lists outputs other than 0 whose gradient is zero by nature (a count of valid rows), so that a loss may be made
	// from them. A loss made from any other output but 0 is an error, because the gradient rules know of output 0 only.
	ZeroGrad []int
	// Rounds: outputs of class Act made of Full inputs (the rows of a table) are rounded to the low dtype at once, so that what follows computes in it.
	Rounds bool
	// Alias: the output is the input's memory under another shape (reshape).
	Alias bool
}

// InClass is the class of input i.
func (k *Kind) InClass(i int) Class { return class(k.In, i) }

// OutClass is the class of output i.
func (k *Kind) OutClass(i int) Class { return class(k.Out, i) }

func class(c []Class, i int) Class {
	if len(c) == 0 {
		return Act
	}
	return c[min(i, len(c)-1)]
}

// Bytes is the memory traffic of an op: every input read and every output written once.
func Bytes(o npu.Op) int64 {
	var n int64
	for _, d := range o.In {
		n += d.PlainBytes()
	}
	for _, d := range o.Out {
		n += d.PlainBytes()
	}
	return n
}

var kinds = map[string]*Kind{}

// Register adds a kind; called from init. A duplicate name panics: that is a bug of the program, not of its user.
func Register(k *Kind) {
	if _, dup := kinds[k.Name]; dup || k.Name == "" || k.Infer == nil {
		panic("op: kind registered twice or incomplete: " + k.Name)
	}
	kinds[k.Name] = k
}

// Lookup finds a kind.
func Lookup(name string) (*Kind, error) {
	if k, ok := kinds[name]; ok {
		return k, nil
	}
	return nil, fmt.Errorf("op: unknown kind %q", name)
}

// Names lists the registered kinds in order.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }
