//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "elementwise.per_isa.h"
#include "elementwise.h"
#include "isa.h"

TABLE(relu);
TABLE(relu_bwd);
TABLE(add);
TABLE(map);
TABLE(convert);
