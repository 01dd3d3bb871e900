// The gradient of embedding for one instruction set and element type.
#include "type.h"

// Blocks lo…hi-1 of 16 columns. The next row of dw is known long before, but not to the processor, so it is prefetched.
static void FN(embedding_columns)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	const int32_t *ids = c->p[1];
	int64_t rows = c->n[0], d = c->n[2], at = lo * 16, m = (hi * 16 < d ? hi * 16 : d) - at;
	const EL *dy = (const EL *)c->p[0] + at;
	float *dw = (float *)c->p[3] + at;
	for (int64_t r = 0; r < rows; r++) {
		const EL *x = dy + r * d;
		float *y = dw + ids[r] * d;
		if (r + 4 < rows) {
			const float *next = dw + ids[r + 4] * d;
			for (int64_t i = 0; i < m; i += 16) __builtin_prefetch(next + i, 1);
		}
#define BODY(R, N, i)                                                                       \
	{                                                                                       \
		int n = N;                                                                          \
		UNROLL for (int u = 0; u < R; u++) {                                                \
			float *q = y + (i) + u * VL;                                                    \
			V t = LD(x + (i) + u * VL);                                                     \
			if (n == VL)                                                                    \
				ISA(st_f32)(q, ISA(ld_f32)(q) + t);                                         \
			else                                                                            \
				ISA(stn_f32)(q, ISA(ldn_f32)(q, n) + t, n);                                 \
		}                                                                                   \
	}
		SPAN(m, BODY);
#undef BODY
	}
}
