// Package reduce implements the arithmetic of collectives: it combines the memory of several ranks element by element.
//
// Many takes any number of sources and writes the result to any number of destinations in one pass; this suits a transport with
// shared memory. Into is the two-operand form for transports that receive into a buffer.
//
// Quantise, Dequantise and SumQuantised are for gradients that travel as 8 bits in blocks with a scale, Narrow and Widen for those that travel as 16.
//
// # Bit-equal by definition
//
// The result for an element depends on its inputs and their order only, not on its position, the split of memory, or the
// implementation: ((s0 + s1) + s2) + …, in the type itself, and for 16-bit floats in float32 with one rounding to nearest
// even at the end. Integers wrap. Max and Min of floats give NaN if any input is NaN (the payload of a NaN is not specified).
// The plain Go code is the definition; with cgo, C code does the same with vector instructions chosen at program
// start (AVX2, AVX-512; $GOTRAIN_MAX_ISA limits them), and a test compares the two bit by bit.
package reduce
