//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "gelu.per_isa.h"
#include "kern.h"
#include "isa.h"

TABLE(gelu);
TABLE(gelu_bwd);
