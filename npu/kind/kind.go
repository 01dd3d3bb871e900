package kind

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Kind is what is known of an op kind wherever it is used: when a graph is built, planned, compiled and checked.
type Kind struct {
	Name string
	// Attrs are the attributes as "name:type …": i int, f float64, b bool, s string, n []int, 2 and 4 []int of that length, w []float64. All may be left
	// out as far as the shape rule is concerned; one that is not listed is an error.
	Attrs string
	// In and Out are the inputs and outputs by name, such as "x w bias:full?bias" (see Arg). Without a flag an argument has the type of activations.
	In, Out string
	// InPlace lists pairs "output=input" that may share memory. State lists those that always do: state that a call updates.
	InPlace, State string
	// Shape gives the outputs. Number of inputs, types of attributes and dimensions (at least 1) are checked before. Its error tells
	// what is wrong, not where.
	Shape func(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error)
	// Complete returns attributes that only graphs carry, made from an op, where devices read the outputs instead. nil: there are none.
	Complete func(op npu.Op) npu.Attrs

	// Follows: the kind has no opinion on precision. It computes in 16 bits where its data already are, so that a loss stays float32 when it is scaled.
	Follows bool
	// Wide: results easily leave the range of f16, so the call stays in float32 there. nil: never.
	Wide func(a npu.Attrs) bool
	// Rounds: outputs of class Act that are made of Full inputs (the rows of a table) are rounded to 16 bits at once.
	Rounds bool
	// Plain: tensors of four dimensions are no pictures [N C H W], or elements are numbered in plain order: layouts of pictures are not for them.
	Plain bool
	// Cheap: the first output may be made again by a second call with the same inputs, instead of being kept for the gradient: the work is little more than
	// to read and write memory, and the result depends on the inputs alone, bit by bit.
	Cheap bool
	// Again, for a call whose inputs are usually lost by then, returns another op that makes the same bits of what is kept: args are the arguments of the
	// first call that it reads, inputs first, then outputs. nil: the same op.
	Again func(op npu.Op) (again npu.Op, args []int)
	// Fns are the values of the attribute fn, where the kind is a family of functions.
	Fns []string

	in, out         []Arg
	attrs           map[string]byte
	inPlace, states []pair
}

var kinds = map[string]*Kind{}

// Register adds a kind to the table and returns it; called from init, or before the first graph is built. What is wrong with it, a second kind of the
// name among it, is a bug of the program and panics.
func Register(k *Kind) *Kind {
	if err := k.prepare(); err != nil {
		panic("kind: " + k.Name + ": " + err.Error())
	}
	kinds[k.Name] = k
	return k
}

func (k *Kind) prepare() (err error) {
	if _, dup := kinds[k.Name]; dup || k.Name == "" || k.Shape == nil || k.Out == "" {
		return fmt.Errorf("registered twice, or without name, outputs or shape rule")
	}
	if k.in, err = parseArgs(k.In); err != nil {
		return err
	}
	if k.out, err = parseArgs(k.Out); err != nil {
		return err
	}
	k.attrs = map[string]byte{}
	for _, f := range strings.Fields(k.Attrs) {
		name, t, _ := strings.Cut(f, ":")
		if len(t) != 1 || typeNames[t[0]] == "" {
			return fmt.Errorf("attribute %q has no type of i f b s n w 2 4", f)
		}
		k.attrs[name] = t[0]
	}
	k.inPlace, k.states = parsePairs(k.InPlace), parsePairs(k.State)
	for _, p := range append(slices.Clone(k.inPlace), k.states...) {
		if !slices.ContainsFunc(k.out, func(a Arg) bool { return a.Name == p[0] }) || !slices.ContainsFunc(k.in, func(a Arg) bool { return a.Name == p[1] }) {
			return fmt.Errorf("%s=%s names no output and input", p[0], p[1])
		}
	}
	for _, a := range append(slices.Clone(k.in), k.out...) {
		if a.If != "" && k.attrs[a.If] != 'b' {
			return fmt.Errorf("argument %s depends on %q, which is no bool attribute", a.Name, a.If)
		}
	}
	return nil
}

// Lookup finds a kind.
func Lookup(name string) (*Kind, error) {
	if k, ok := kinds[name]; ok {
		return k, nil
	}
	return nil, fmt.Errorf("kind: unknown op kind %q", name)
}

// Of is Lookup for a kind that the caller knows to be there: it panics where it is not.
func Of(name string) *Kind {
	k, err := Lookup(name)
	if err != nil {
		panic(err)
	}
	return k
}

// Names lists the registered kinds in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// Inputs are the inputs of a call with these attributes.
func (k *Kind) Inputs(a npu.Attrs) []Arg { return present(k.in, a) }

// Outputs are the outputs of a call with these attributes.
func (k *Kind) Outputs(a npu.Attrs) []Arg { return present(k.out, a) }

// InClass is the class of input i.
func (k *Kind) InClass(a npu.Attrs, i int) Class {
	x, _ := at(k.Inputs(a), i)
	return x.Class
}

// OutClass is the class of output i.
func (k *Kind) OutClass(a npu.Attrs, i int) Class {
	x, _ := at(k.Outputs(a), i)
	return x.Class
}

// MayBeNil reports whether output i may be bound to the nil pointer.
func (k *Kind) MayBeNil(a npu.Attrs, i int) bool {
	x, ok := at(k.Outputs(a), i)
	return ok && x.Nil
}

// Saves reports whether output i is for the gradient kind only, so that a device may keep it in a form of its own.
func (k *Kind) Saves(a npu.Attrs, i int) bool {
	x, ok := at(k.Outputs(a), i)
	return ok && x.Saved
}

// Pairs are the {output, input} of a call that may share memory.
func (k *Kind) Pairs(a npu.Attrs) [][2]int { return k.places(k.inPlace, a) }

// MakeAgain returns the op that makes the first output of op a second time, and the arguments of op that it reads: inputs first, then outputs. ok is false
// for a kind that is too dear to run twice, or that updates a state.
func (k *Kind) MakeAgain(op npu.Op) (again npu.Op, args []int, ok bool) {
	if !k.Cheap || len(k.States(op.Attrs)) > 0 {
		return op, nil, false
	}
	if k.Again != nil {
		again, args = k.Again(op)
		return again, args, true
	}
	for i := range op.In {
		args = append(args, i)
	}
	return op.Clone(), args, true
}

// States are the {output, input} that always do: the call updates them.
func (k *Kind) States(a npu.Attrs) [][2]int { return k.places(k.states, a) }

// StateOf is the input that output i updates, if it is such state.
func (k *Kind) StateOf(a npu.Attrs, i int) (in int, ok bool) {
	for _, s := range k.States(a) {
		if s[0] == i {
			return s[1], true
		}
	}
	return 0, false
}

// HasFn reports whether the attribute fn is one that the kind has, or the kind has none at all.
func (k *Kind) HasFn(a npu.Attrs) bool { return k.Fns == nil || slices.Contains(k.Fns, a.Str("fn")) }
