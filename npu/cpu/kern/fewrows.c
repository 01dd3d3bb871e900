//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "fewrows.per_isa.h"
#include "kern.h"
// FEW_GROUP rows of the matrix are processed before anything is stored, FEW_SUMS sums at once, and FEW_PIECE bytes of a at a time.
enum { FEW_SUMS = 16, FEW_GROUP = 16, FEW_PIECE = 24 << 10 };
// Whether one row of a is multiplied by one row of b after the other, which gives the same sums, bit by bit: Zen's prefetcher follows one stream at twice the
// speed of four that lie close together.
static int few_alone(void) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
	__builtin_cpu_init();
	return __builtin_cpu_is("amd") != 0;
#else
	return 0;
#endif
}
#define UNROLL_ALL _Pragma("GCC unroll 16")
#include "isa.h"

TABLE(fewrows);
