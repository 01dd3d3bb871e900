//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "rmsnorm.per_isa.h"
#include "kern.h"
// Number of rows whose contributions to dw are summed together in float32; the sums are merged in float64.
enum { RMS_CHUNK = 32 };
#include "isa.h"

TABLE(rmsnorm);
TABLE(rmsnorm_bwd);
