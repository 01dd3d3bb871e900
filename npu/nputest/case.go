package nputest

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// Case is a small program on tensors. Its last call is of the kind under test; a call before it makes what that kind reads.
type Case struct {
	Kind    string
	Name    string    // what is special about it
	DType   npu.DType // of the activations
	Tensors []Tensor
	Calls   []Call
	Grads   []Grad // what the results of the last call are gradients of
	Fails   string // text that the error has, if the last call must fail: labels and ids outside their range
}

// Tensor is an argument of a case.
type Tensor struct {
	Desc   npu.Desc  // Plain, or Any where the device may choose
	Values []float64 // of an input, or of a result that a call adds to; nil: a call writes it
	Free   bool      // not compared: more than one answer is right
	Only   []int     // the elements that are compared; nil: all
	Size   float64   // errors are measured against Size + |value|; 0 means 1
}

// Call is one op of a case. Numbers are places in Case.Tensors.
type Call struct {
	Kind    string
	Attrs   npu.Attrs
	In, Out []int
	Nil     []int    // outputs that nobody wants: they are bound to the nil pointer
	InPlace [][2]int // pairs {output, input}: the output lies in the input's memory
}

// Grad says that tensor Of is the gradient of the sum of Y times DY with respect to tensor By.
type Grad struct{ Of, By, Y, DY int }

// String names the case in messages.
func (c Case) String() string { return fmt.Sprintf("%s %s, %s", c.Kind, c.DType, c.Name) }

// Op is call i as a device sees it before it chooses layouts.
func (c Case) Op(i int) npu.Op {
	call := c.Calls[i]
	op := npu.Op{Kind: call.Kind, Attrs: call.Attrs}
	for _, t := range call.In {
		op.In = append(op.In, c.Tensors[t].Desc)
	}
	for _, t := range call.Out {
		op.Out = append(op.Out, c.Tensors[t].Desc)
	}
	return op
}

// WithAlgorithm returns the case with an algorithm for its last call: see npu.AttrAlgorithm.
func (c Case) WithAlgorithm(name string) Case {
	c.Name += " by " + name
	c.Calls = append([]Call{}, c.Calls...)
	last := &c.Calls[len(c.Calls)-1]
	last.Attrs = npu.Op{Attrs: last.Attrs}.WithAlgorithm(name).Attrs
	return c
}

// In returns the case with activations [N C H W] that come in the layout where the device may choose.
func (c Case) In(l npu.Layout) Case {
	c.Name += " in " + string(l)
	c.Tensors = append([]Tensor{}, c.Tensors...)
	for i := range c.Tensors {
		if t := &c.Tensors[i]; t.Values != nil && t.Desc.Layout == npu.Any && len(t.Desc.Shape) == 4 && t.Desc.DType == c.DType {
			t.Desc.Layout = l
		}
	}
	return c
}
