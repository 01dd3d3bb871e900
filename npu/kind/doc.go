// Package kind is the one table of what is known of each op kind: attributes, inputs and outputs by name, the rule that gives shapes and types, which
// outputs may be left out, what may lie in place of what, and what mixed precision does with each argument. Graphs (graph/op, graph/plan) and devices read it,
// so that an op that a graph accepts is one that every device accepts. npu/kinds.go has the meaning of the kinds in words.
//
// A kind is data:
//
//	kind.Register(&kind.Kind{
//		Name: "scale_shift", Attrs: "floor:f relu:b",
//		In:   "x gamma:full beta:full?shift", Out: "y mask:keep,nil",
//		InPlace: "y=x", Shape: shape,
//	})
//
// [Arg] explains the notation of inputs and outputs. [Kind.Infer] is for graphs: strict, an attribute that the kind does not know is an error. [Check] is the
// same for a whole op, as a device gets it.
//
// Kinds from outside this module are registered in the same way. docs/custom-ops.md has all the steps.
package kind
