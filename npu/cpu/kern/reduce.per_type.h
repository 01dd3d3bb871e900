// Reductions for one instruction set and element type.
#include "type.h"

// Sum or maximum of m adjacent elements.
static double FN(reduce_run)(const EL *x, int64_t m, int max) {
	double t = max ? -INFINITY : 0;
	for (int64_t b = 0; b < m; b += 1024) { // float32 within 1024 elements
		int64_t k = m - b < 1024 ? m - b : 1024, i = 0;
		enum { n = VL };
		V s[4];
		for (int u = 0; u < 4; u++) s[u] = ISA(splat)(max ? -INFINITY : 0);
		for (; i + 4 * VL <= k; i += 4 * VL)
			UNROLL for (int u = 0; u < 4; u++) {
				V v = LD(x + b + i + u * VL);
				s[u] = max ? ISA(select)(v != v, v, ISA(vmax)(s[u], v)) : s[u] + v;
			}
		float lanes[4 * VL], f = max ? -INFINITY : 0;
		memcpy(lanes, s, sizeof lanes);
		for (; i < k; i++) {
			float v = LD1(x + b + i);
			f = max ? (v > f || v != v ? v : f) : f + v;
		}
		for (int u = 0; u < 4 * VL; u++) f = max ? (lanes[u] > f || lanes[u] != lanes[u] ? lanes[u] : f) : f + lanes[u];
		t = max ? (f > t || f != f ? f : t) : t + f;
	}
	return t;
}

// One unit of work is an element of y, or up to 256 adjacent ones if the innermost dim is kept.
static void FN(reduce_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t kd = c->n[2], rd = c->n[3], inner = c->n[4], max = c->n[0] == RED_MAX;
	const int64_t *keep = c->v, *red = c->v + 2 * kd;
	EL *y = c->p[1];
	int64_t loops = 1, outer = inner ? rd : rd - 1; // reduced dims that are traversed element by element
	for (int64_t d = 0; d < outer; d++) loops *= red[2 * d];
	double div = c->n[0] == RED_MEAN ? (double)c->n[1] : 1;
	for (int64_t k = lo; k < hi; k++) {
		int64_t rest = k, base = 0, at = k, m = 1;
		if (inner) {
			int64_t last = keep[2 * kd - 2], tiles = (last + 255) / 256, tile = rest % tiles;
			rest /= tiles;
			at = rest * last + tile * 256, base = tile * 256, m = last - base < 256 ? last - base : 256;
		}
		for (int64_t d = kd - 1 - inner; d >= 0; d--) base += rest % keep[2 * d] * keep[2 * d + 1], rest /= keep[2 * d];
		double t[256];
		for (int64_t j = 0; j < m; j++) t[j] = max ? -INFINITY : 0;
		for (int64_t l = 0; l < loops; l++) {
			int64_t q = l, from = base;
			for (int64_t d = outer - 1; d >= 0; d--) from += q % red[2 * d] * red[2 * d + 1], q /= red[2 * d];
			const EL *x = (const EL *)c->p[0] + from;
			if (!inner) {
				double v = FN(reduce_run)(x, red[2 * rd - 2], (int)max);
				t[0] = max ? (v > t[0] || v != v ? v : t[0]) : t[0] + v;
			} else if (max)
				for (int64_t j = 0; j < m; j++) {
					double v = LD1(x + j);
					if (v > t[j] || v != v) t[j] = v;
				}
			else
				for (int64_t j = 0; j < m; j++) t[j] += LD1(x + j);
		}
		for (int64_t j = 0; j < m; j++) ST1(y + at + j, (float)(t[j] / div));
	}
}
