//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "reduce.per_isa.h"
#include "kern.h"
enum { RED_SUM, RED_MEAN, RED_MAX };
#include "isa.h"

TABLE(reduce);
