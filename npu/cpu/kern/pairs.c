//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "pairs.per_isa.h"
#include "pairs.h"

// A pixel of the result, counted by row and column.
typedef struct {
	int64_t image, y, x;
} pairs_at;

static inline void pairs_next(const pairs *g, pairs_at *a) {
	if (++a->x < g->ow) return;
	a->x = 0;
	if (++a->y < g->oh) return;
	a->y = 0, a->image++;
}

// The pixel of x under tap (i, j) of a pixel of the result; null in the padding, and behind the last image.
static inline const uint16_t *pairs_under(const pairs *g, const uint16_t *x, pairs_at a, int64_t i, int64_t j) {
	int64_t y = a.y * g->sh + i * g->dh - g->top, c = a.x * g->sw + j * g->dw - g->left;
	if (a.image >= g->images || y < 0 || y >= g->h || c < 0 || c >= g->w) return 0;
	return x + ((a.image * g->h + y) * g->w + c) * g->in;
}

// Reads n channels of a pixel into the second-level cache, beside the products of an earlier strip. Zen's own prefetchers do not follow pairs of rows, which
// would arrive at a quarter of the rate of memory.
static inline void pairs_fetch(const uint16_t *x, int64_t n) {
	for (int64_t i = 0; i < n; i += PAIRS_STEP) __builtin_prefetch(x + i, 0, 2);
}

static const uint16_t pairs_zeros[PAIRS_STEP] __attribute__((aligned(64)));
#define UNROLL_ALL _Pragma("GCC unroll 16")
#include "isa.h"

TABLE(pairs);
