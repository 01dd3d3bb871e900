// Weights from float32 with strides to bf16 in the blocked orders of the library's kernels: blocks of columns, and in them rows of pairs, …[X columns][2].
#ifndef KERN_PACK_H
#define KERN_PACK_H

#include "kern.h"

enum { PACK_OUTER = 3 };

// Sizes and distances in elements. kern_cmd.v holds one, which package kern's Go code fills field by field.
typedef struct {
	int64_t pairs, inner, far;      // pairs; those that follow each other in a block; from such a run to the next in y
	int64_t pair;                   // between the two of a pair in x
	int64_t columns, padded, block; // columns of x; of y, where the others are 0; of a block
	int64_t next, column;           // between blocks in y; between columns in x
	struct { int64_t n, x, y; } outer[PACK_OUTER]; // the other dimensions
} pack;

// Where pair p is in y.
static inline int64_t pack_pair(const pack *g, int64_t p) { return p / g->inner * g->far + p % g->inner * 2 * g->block; }

#endif
