//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "pool.per_isa.h"
#include "kern.h"

// How many channels of an image are one unit of work: a block, or 16.
static inline int64_t gap_width(const kern_cmd *c) { return c->n[3] > KERN_PLANES ? c->n[3] : 16; }
static inline int64_t gap_groups(const kern_cmd *c) { return (c->n[1] + gap_width(c) - 1) / gap_width(c); }

#include "isa.h"

TABLE(gap);
TABLE(gap_bwd);
