//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "layernorm.per_isa.h"
#include "kern.h"
// Number of rows whose contributions to dw and db are summed together in float32; the sums are merged in float64.
enum { LN_CHUNK = 32 };
#include "isa.h"

TABLE(layernorm);
TABLE(layernorm_bwd);
