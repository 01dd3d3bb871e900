//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "optim.per_isa.h"
#include "kern.h"
#include "isa.h"

TABLE(sgd);
TABLE(adamw);
TABLE(sumsq);
TABLE(lars);
TABLE(lamb_moments);
TABLE(lamb);
TABLE(scale);
TABLE(ema);
