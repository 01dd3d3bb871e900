//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "winograd.per_isa.h"
#include "winograd.h"

typedef int (*product_fn)(void *self, void *stream);

// product runs number i of a part.
static int product(const kern_cmd *c, int64_t part, int64_t of, int64_t i) {
	const wino_product *p = &((const wino *)c->v)->products[part * of + i];
	return ((product_fn)(intptr_t)p->fn)((void *)(intptr_t)p->self, c->stream);
}

static const float nothing[16] __attribute__((aligned(64))); // what lies in the padding

// A tile's image and place.
typedef struct {
	int64_t image, y, x;
} wino_at;

static inline wino_at where(const wino *g, int64_t t) {
	int64_t plane = g->rows * g->cols;
	wino_at a = {t / plane, t % plane / g->cols * g->tile, t % g->cols * g->tile};
	return a;
}
#include "isa.h"

TABLE(wino_conv);
TABLE(wino_conv_bwd_weights);
