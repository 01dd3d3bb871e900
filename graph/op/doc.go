// Package op defines the op kinds of graphs as data: to the facts of package npu/kind (shape rule, arguments, mixed precision, memory) it adds a gradient
// rule and an operation count. One file per family; [Lookup] finds a kind by name.
//
// A shape rule ([kind.Kind.Infer]) is strict: a wrong number of inputs, rank, channel count, dtype or attribute, or an attribute that the kind does not
// know, is an error that states what was found and what is required. It follows the dtypes of its inputs, so the same rule serves float32, mixed
// precision (16-bit activations, float32 statistics) and float64.
//
// A gradient rule ([Kind.Grad]) builds calls through a [Tape]. It sees the call's inputs and outputs and the gradient of output 0, and returns a gradient
// for each input, or nil. Unused calls are pruned later, so a rule returns all gradients; costly ones are separate calls:
// a convolution's dx and dw are two calls, so the first layer computes no dx.
//
// docs/custom-ops.md tells how to add an op, from this module or another one. Of this module's kinds graph/gradcheck_test.go compares each rule with central
// differences, and fails where a row is missing.
//
// Gradients where functions are not differentiable: relu and abs have gradient 0 at 0; max and min of equal operands pass it all to the first;
// a maximum over axes divides it evenly between equal elements.
package op
