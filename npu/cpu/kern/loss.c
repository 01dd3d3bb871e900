//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "loss.per_isa.h"
#include "kern.h"

enum { LOSS_TABLE = KERN_ARGS - 1 }; // where constants are

#include "isa.h"

TABLE(one_hot);
TABLE(bce);
TABLE(bce_bwd);
TABLE(mse);
TABLE(mse_bwd);
