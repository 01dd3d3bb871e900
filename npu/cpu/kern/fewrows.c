//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "fewrows_isa.h"
#include "kern.h"
// FEW_ROWS is the largest number of rows of a.
enum { FEW_ROWS = 8, FEW_BIAS = 1, FEW_OUT_F32 = 2 };
#include "isa.h"

TABLE(fewrows);
