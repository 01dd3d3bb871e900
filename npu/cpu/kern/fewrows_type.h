// Products of few rows with a matrix for one instruction set and element type of the matrix; a is float32, converted before where it was not.
#include "type.h"

INLINE void FN(few_put)(const kern_cmd *c, int64_t row, int64_t col, float v) {
	int64_t at = row * c->n[2] + col;
	if (c->p[2]) v += ((const float *)c->p[2])[col];
	if (c->flags & FEW_OUT_F32)
		((float *)c->p[3])[at] = v;
	else
		ST1((EL *)c->p[3] + at, v);
}

// Rows col…col+R-1 of b with all M rows of a; M and R are constants where this is inlined.
INLINE void FN(few_block)(const kern_cmd *c, const float *a, int64_t col, const int M, const int R) {
	int64_t k = c->n[1];
	const EL *b = (const EL *)c->p[1] + col * k;
	V s[16];
	UNROLL for (int j = 0; j < 16; j++) s[j] = (V){0};
#define STEP(N, i)                                                                            \
	{                                                                                         \
		int n = N;                                                                            \
		V v[4];                                                                               \
		UNROLL for (int r = 0; r < R; r++) v[r] = LD(b + r * k + (i));                        \
		UNROLL for (int q = 0; q < M; q++) {                                                  \
			V t = n == VL ? ISA(ld_f32)(a + q * k + (i)) : ISA(ldn_f32)(a + q * k + (i), n);  \
			UNROLL for (int r = 0; r < R; r++) s[q * R + r] += t * v[r];                      \
		}                                                                                     \
	}
	int64_t i = 0;
	for (; i + 64 / (int)sizeof(EL) <= k; i += 64 / (int)sizeof(EL)) { // a cache line
		UNROLL for (int r = 0; r < R; r++) __builtin_prefetch((const char *)(b + r * k + i) + AHEAD);
		UNROLL for (int l = 0; l < 64 / (int)sizeof(EL); l += VL) STEP(VL, i + l)
	}
	for (; i + VL <= k; i += VL) STEP(VL, i)
	if (i < k) STEP((int)(k - i), i)
#undef STEP
	for (int q = 0; q < M; q++)
		for (int r = 0; r < R; r++) FN(few_put)(c, q, col + r, ISA(vsum)(s[q * R + r]));
}

// Groups lo…hi-1 of four rows of b.
static void FN(few_groups)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	const float *a = c->dt == KERN_BF16 ? c->ws : c->p[0];
	int64_t j = lo * 4, end = hi * 4 < c->n[2] ? hi * 4 : c->n[2];
#define CASE(M, R)                                                        \
	case M:                                                               \
		for (; j + R <= end; j += R) FN(few_block)(c, a, j, M, R);        \
		for (; j < end; j++) FN(few_block)(c, a, j, M, 1);                \
		break;
	switch (c->n[0]) {
		CASE(1, 4)
		CASE(2, 4)
		CASE(3, 4)
		CASE(4, 4)
		CASE(5, 2)
		CASE(6, 2)
		CASE(7, 2)
		CASE(8, 2)
	}
#undef CASE
}
