// Rotary positions for one instruction set and element type.
#include "type.h"

// One head: element i with i + half. Nothing is stored before it has been read, so y may be x.
INLINE void FN(rope_half)(EL *y, const EL *x, const float *cs, const float *sn, float sign, int64_t half) {
#define BODY(R, N, i)                                                                                  \
	{                                                                                                  \
		int n = N;                                                                                     \
		UNROLL for (int u = 0; u < R; u++) {                                                           \
			int64_t k = (i) + u * VL;                                                                  \
			V a = LD(x + k), b = LD(x + half + k), c = LDF(cs + k), s = LDF(sn + k) * sign;            \
			ST(y + k, a * c - b * s);                                                                  \
			ST(y + half + k, b * c + a * s);                                                           \
		}                                                                                              \
	}
	SPAN(half, BODY);
#undef BODY
}

// One head: element 2i with 2i + 1. VL is even, so pairs stay together.
INLINE void FN(rope_adjacent)(EL *y, const EL *x, const float *cs, const float *sn, float sign, int64_t d) {
#define BODY(R, N, i)                                                                                  \
	{                                                                                                  \
		int n = N;                                                                                     \
		UNROLL for (int u = 0; u < R; u++) {                                                           \
			int64_t k = (i) + u * VL;                                                                  \
			V a = LD(x + k);                                                                           \
			ST(y + k, a * LDF(cs + k) + ISA(swap)(a) * (LDF(sn + k) * sign));                          \
		}                                                                                              \
	}
	SPAN(d, BODY);
#undef BODY
}

// x, pos or null, y: tokens lo…hi-1, all heads of a token by one row of the table.
static void FN(rope_tokens)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t s = c->n[1], heads = c->n[2], d = c->n[3];
	const int32_t *pos = c->p[1];
	float sign = c->flags & ROPE_INVERSE ? -1 : 1, room[2 * ROPE_MAX_HEAD];
	for (int64_t t = lo; t < hi; t++) {
		const float *row = rope_row(c, pos ? pos[t] : t % s, room);
		const EL *x = (const EL *)c->p[0] + t * heads * d;
		EL *y = (EL *)c->p[2] + t * heads * d;
		for (int64_t h = 0; h < heads; h++, x += d, y += d)
			if (c->flags & ROPE_ADJACENT)
				FN(rope_adjacent)(y, x, row, row + d, sign, d);
			else
				FN(rope_half)(y, x, row, row + d / 2, sign, d / 2);
	}
}
