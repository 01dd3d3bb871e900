//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "swiglu.per_isa.h"
#include "kern.h"
#include "isa.h"

TABLE(swiglu);
TABLE(swiglu_bwd);
