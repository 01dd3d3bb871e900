// SwiGLU for one instruction set and element type. Ranges count blocks of 1024 elements.
#include "type.h"
#define RANGE                                                                                \
	const kern_cmd *c = ctx;                                                                 \
	int64_t at = lo * 1024, m = (hi * 1024 < c->n[0] ? hi * 1024 : c->n[0]) - at;

// gate, up, y = gate·sigmoid(gate)·up.
static void FN(swiglu_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	const EL *gate = (const EL *)c->p[0] + at, *up = (const EL *)c->p[1] + at;
	EL *y = (EL *)c->p[2] + at;
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V g = LD(gate + (i) + u * VL);                                         \
			ST(y + (i) + u * VL, g * ISA(sigmoid)(g) * LD(up + (i) + u * VL));     \
		}                                                                          \
	}
	SPAN(m, BODY);
#undef BODY
}

// dy, gate, up, dgate = dy·up·(s + gate·s·(1-s)), dup = dy·gate·s.
static void FN(swiglu_bwd_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	const EL *dy = (const EL *)c->p[0] + at, *gate = (const EL *)c->p[1] + at, *up = (const EL *)c->p[2] + at;
	EL *dgate = (EL *)c->p[3] + at, *dup = (EL *)c->p[4] + at;
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V d = LD(dy + (i) + u * VL), g = LD(gate + (i) + u * VL), b = LD(up + (i) + u * VL); \
			V s = ISA(sigmoid)(g), h = g * s;                                      \
			ST(dgate + (i) + u * VL, d * b * (s + h * (1 - s)));                   \
			ST(dup + (i) + u * VL, d * h);                                         \
		}                                                                          \
	}
	SPAN(m, BODY);
#undef BODY
}
#undef RANGE
