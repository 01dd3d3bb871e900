//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "fewrows.per_isa.h"
#include "kern.h"
// FEW_GROUP rows of the matrix are processed before anything is stored, FEW_SUMS sums at once, and FEW_PIECE bytes of a at a time.
enum { FEW_SUMS = 16, FEW_GROUP = 16, FEW_PIECE = 24 << 10 };
#define UNROLL_ALL _Pragma("GCC unroll 16")
#include "isa.h"

TABLE(fewrows);
