// Function codes of unary and binary ops.
#ifndef KERN_ELEMENTWISE_H
#define KERN_ELEMENTWISE_H
#include "kern.h"

enum {
	FN_NEG, FN_EXP, FN_LOG, FN_SQRT, FN_RSQRT, FN_SQUARE, FN_ABS, FN_RECIP, FN_TANH, FN_SIGMOID, FN_SILU, FN_SIGN, FN_AFFINE,
	FN_ADD, FN_SUB, FN_MUL, FN_DIV, FN_MAX, FN_MIN, FN_GT, FN_GE, FN_EQ
};

// A map: y = fn(a, b) over dims, in the order of y. n[0] is the function, n[1] relu, n[2] the number of dims, n[3..5] the types of a, b, y.
// v holds the dims, then the strides of a, then those of b, all in elements. The last dim's strides are 0 or 1; y is contiguous.
#endif
