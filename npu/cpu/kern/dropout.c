//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "dropout.per_isa.h"
#include "isa.h"

TABLE(dropout);
