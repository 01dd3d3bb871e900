// Package graphtest executes lowered graphs with the plain-Go reference, call by call and without any pass of the compiler in between, and compares
// gradients with central differences. It is for tests of layers, models and ops, including custom ones:
//
//	g, err := b.Lower()
//	err = graphtest.CheckGrads(g, nil, 1e-6)   // random inputs and parameters, in float64
//
// [Models] are small models, at least one for each kind with a gradient, and [Gradients] compares all of them on a device with the reference.
//
// [Machine] gives access to every value of a run. [OnDevice] compiles a model for a real device and gives access to inputs, outputs, gradients and
// states by name, for comparisons with other implementations, whose numbers [Reference] reads and [Distance] compares.
package graphtest
