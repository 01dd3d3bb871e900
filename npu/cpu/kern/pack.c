//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "pack.per_isa.h"
#include "pack.h"
#include "isa.h"

TABLE(pack);
