//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "optim_isa.h"
#include "kern.h"
enum { SGD_NESTEROV = 1, SGD_DECOUPLED = 2, SGD_MOMENTUM = 4, ADAM_COUPLED = 1, LARS_SKIP = 1 };
#include "isa.h"

TABLE(sgd);
TABLE(adamw);
TABLE(sumsq);
TABLE(lars);
TABLE(scale);
