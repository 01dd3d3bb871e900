package op

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
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

// Kind is an op kind in graphs: the facts of package npu/kind, and the rules that only graphs have. Adding an op is one file with such a value, one with
// its facts, and an implementation in each device, npu/ref first.
type Kind struct {
	*kind.Kind
	// Grad builds the gradients of the inputs; a nil entry is "no gradient". A nil Grad: the kind is not differentiable.
	Grad func(t Tape, c Call) ([]Ref, error)
	// DiffWRT says which inputs have a gradient, given attributes and number of inputs. nil: all float inputs.
	DiffWRT func(a npu.Attrs, n int) []bool
	// Indexes says which inputs hold indices, for a call that Infer accepts. nil: none.
	Indexes func(a npu.Attrs, in []npu.Desc) []Index
	// FLOPs counts floating-point operations (a multiply-add is two). nil: one per output element.
	FLOPs func(o npu.Op) int64
	// ZeroGrad lists outputs other than 0 whose gradient is zero by nature (a count of valid rows), so that a loss may be made
	// from them. A loss made from any other output but 0 is an error, because the gradient rules know of output 0 only.
	ZeroGrad []int
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
	if _, dup := kinds[k.Name]; dup {
		panic("op: kind registered twice: " + k.Name)
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
