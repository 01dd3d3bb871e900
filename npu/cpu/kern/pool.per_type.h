// Global average pooling for one instruction set and element type.
#include "type.h"

// where returns the position of channel ch of image i, and the stride within its plane.
#define WHERE                                                                            \
	int64_t most = gap_width(c), groups = gap_groups(c), hw = c->n[2], i = k / groups, c0 = k % groups * most; \
	int64_t w = c->n[1] - c0 < most ? c->n[1] - c0 : most, base, step;                                        \
	if (c->n[3] == KERN_ROWS) base = i * hw * c->n[1] + c0, step = c->n[1];                                   \
	else base = (i * c->n[1] + c0) * hw, step = c->n[3];

static void FN(gap_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	for (int64_t k = lo; k < hi; k++) {
		WHERE
		const EL *x = (const EL *)c->p[0] + base;
		EL *y = (EL *)c->p[1] + i * c->n[1] + c0;
		float inv = 1 / (float)hw;
		if (c->n[3] == KERN_PLANES) {
			for (int64_t j = 0; j < w; j++) {
				const EL *p = x + j * hw;
				V s[4] = {0};
#define BODY(R, N, at)                                                     \
	{                                                                      \
		int n = N;                                                         \
		UNROLL for (int u = 0; u < R; u++) s[u] += LD(p + (at) + u * VL);  \
	}
				SPAN(hw, BODY);
#undef BODY
				ST1(y + j, ISA(vsum)((s[0] + s[1]) + (s[2] + s[3])) * inv);
			}
			continue;
		}
		for (int64_t j = 0; j < w; j += VL) {
			V s = {0};
			int n = w - j < VL ? (int)(w - j) : VL;
			for (int64_t r = 0; r < hw; r++) s += LD(x + r * step + j);
			ST(y + j, s * inv);
		}
	}
}

static void FN(gap_bwd_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	for (int64_t k = lo; k < hi; k++) {
		WHERE
		const EL *dy = (const EL *)c->p[0] + i * c->n[1] + c0;
		EL *dx = (EL *)c->p[1] + base;
		float inv = 1 / (float)hw;
		if (c->n[3] == KERN_PLANES) {
			for (int64_t j = 0; j < w; j++) {
				EL v;
				ST1(&v, LD1(dy + j) * inv);
				for (int64_t r = 0; r < hw; r++) dx[j * hw + r] = v;
			}
			continue;
		}
		for (int64_t j = 0; j < w; j += VL) {
			int n = w - j < VL ? (int)(w - j) : VL;
			V v = LD(dy + j) * inv;
			for (int64_t r = 0; r < hw; r++) ST(dx + r * step + j, v);
		}
	}
}
#undef WHERE
