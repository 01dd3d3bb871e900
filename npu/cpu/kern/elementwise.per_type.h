// Elementwise ops of the training step, for one instruction set and element type. Ranges count blocks of 1024 elements.
#include "type.h"
#define RANGE                                                                                \
	const kern_cmd *c = ctx;                                                                 \
	int64_t at = lo * 1024, m = (hi * 1024 < c->n[0] ? hi * 1024 : c->n[0]) - at;

static void FN(relu_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	const EL *x = (const EL *)c->p[0] + at;
	EL *y = (EL *)c->p[1] + at;
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) ST(y + (i) + u * VL, ISA(vrelu)(LD(x + (i) + u * VL))); \
	}
	SPAN(m, BODY);
#undef BODY
}

static void FN(relu_bwd_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	const EL *dy = (const EL *)c->p[0] + at, *y = (const EL *)c->p[1] + at;
	EL *dx = (EL *)c->p[2] + at;
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++)                                         \
			ST(dx + (i) + u * VL, ISA(select)(LD(y + (i) + u * VL) > (V){0}, LD(dy + (i) + u * VL), (V){0})); \
	}
	SPAN(m, BODY);
#undef BODY
}

// y = relu?(a + b).
static void FN(add_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	const EL *a = (const EL *)c->p[0] + at, *b = (const EL *)c->p[1] + at;
	EL *y = (EL *)c->p[2] + at;
	int relu = c->flags & ADD_RELU;
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V t = LD(a + (i) + u * VL) + LD(b + (i) + u * VL);                     \
			ST(y + (i) + u * VL, relu ? ISA(vrelu)(t) : t);                        \
		}                                                                          \
	}
	SPAN(m, BODY);
#undef BODY
}
#undef RANGE
