// GELU for one instruction set and element type. Ranges count blocks of 1024 elements.
#include "type.h"
#define RANGE                                                                                \
	const kern_cmd *c = ctx;                                                                 \
	int64_t at = lo * 1024, m = (hi * 1024 < c->n[0] ? hi * 1024 : c->n[0]) - at;

// n elements; dy is null forward.
INLINE void FN(gelu_span)(EL *to, const EL *dy, const EL *x, int64_t m, const int tanh, const int back) {
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V v = LD(x + (i) + u * VL), y, slope;                                  \
			if (tanh)                                                              \
				ISA(gelu_tanh)(v, &y, &slope);                                     \
			else                                                                   \
				ISA(gelu_exact)(v, &y, &slope);                                    \
			ST(to + (i) + u * VL, back ? slope * LD(dy + (i) + u * VL) : y);       \
		}                                                                          \
	}
	SPAN(m, BODY);
#undef BODY
}

// x, y.
static void FN(gelu_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	const EL *x = (const EL *)c->p[0] + at;
	if (c->flags & GELU_TANH)
		FN(gelu_span)((EL *)c->p[1] + at, 0, x, m, 1, 0);
	else
		FN(gelu_span)((EL *)c->p[1] + at, 0, x, m, 0, 0);
}

// dy, x, dx.
static void FN(gelu_bwd_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	const EL *dy = (const EL *)c->p[0] + at, *x = (const EL *)c->p[1] + at;
	if (c->flags & GELU_TANH)
		FN(gelu_span)((EL *)c->p[2] + at, dy, x, m, 1, 1);
	else
		FN(gelu_span)((EL *)c->p[2] + at, dy, x, m, 0, 1);
}
#undef RANGE
