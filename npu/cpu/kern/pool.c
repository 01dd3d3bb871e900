//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "pool.per_isa.h"
#include "isa.h"

TABLE(gap);
TABLE(gap_bwd);
