// Package op defines the op kinds of graphs as data: for each kind of npu/kinds.go a shape rule, a gradient rule, an operation count, and what mixed
// precision and memory planning need to know. One file per family; [Lookup] finds a kind by name.
//
// A shape rule ([Kind.Infer]) is strict: a wrong number of inputs, rank, channel count, dtype or attribute, or an attribute that the kind does not know, is an
// error that states what was found and what is required. It follows the dtypes of its inputs, so the same rule serves float32, mixed precision (16-bit
// activations, float32 statistics) and float64.
//
// A gradient rule ([Kind.Grad]) builds calls through a [Tape]. It sees the call's inputs and outputs and the gradient of output 0, and returns a gradient
// for each input, or nil. Unused calls are pruned later, so a rule returns all gradients; costly ones are separate calls:
// a convolution's dx and dw are two calls, so the first layer computes no dx.
//
// To add an op: a name in npu/kinds.go with its meaning, a Kind here, the implementation in each device (npu/ref first), and a row in the table of
// graph/gradcheck_test.go, which compares the rule with central differences and fails where a row is missing.
//
// Gradients where functions are not differentiable: relu and abs have gradient 0 at 0; max and min of equal operands pass it all to the first;
// a maximum over axes divides it evenly between equal elements.
package op
