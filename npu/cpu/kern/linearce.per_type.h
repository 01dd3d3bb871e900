// Steps of cross-entropy with its linear layer, for one instruction set and element type. The logits come as tiles: a few rows by a few
// adjacent columns of the vocabulary, in float32.
#include "type.h"
// Σ exp(t - top); the terms are stored to e if it is not null. *most becomes the largest element.
static double FN(lce_exp)(const float *t, EL *e, int64_t m, float top, float *most) {
	V s[4] = {0}, high[4];
	for (int u = 0; u < 4; u++) high[u] = ISA(splat)(-INFINITY);
#define BODY(R, N, i)                                                      \
	{                                                                      \
		int n = N;                                                         \
		UNROLL for (int u = 0; u < R; u++) {                               \
			V l = LF(t + (i) + u * VL), p = ISA(vexp)(l - top);            \
			if (n < VL) p = ISA(keep)(p, n);                               \
			else high[u] = ISA(vmax)(high[u], l);                          \
			s[u] += p;                                                     \
			if (e) ST(e + (i) + u * VL, p);                                \
		}                                                                  \
	}
	SPAN(m, BODY);
#undef BODY
	float best = ISA(vhigh)(high);
	for (int64_t i = m / VL * VL; i < m; i++)
		if (t[i] > best) best = t[i];
	*most = best;
	return ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
}

// lce_tile: tile, labels, top f32[rows], sum f64[rows], at f32[rows], then, all or none null: e [rows cols], tops f32[rows], acc f32[rows d].
// n: rows, cols, ignore_index, first column, d, 1 in the first tile of its rows.
//
// sum is Σ exp(logit - top) so far, at the logit of the label. top is the largest logit of the first tile, and is raised only if a later one exceeds it by
// so much that powers might overflow, which saves a pass over the tile. e becomes exp(logit - top), and tops the top used for it; e is 0 in the
// label's column and in ignored rows, which are handled separately. acc, a sum over earlier tiles of products with their e, is brought to the new top.
static void FN(lce_tile_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1], d = c->n[4];
	const int32_t *labels = c->p[1];
	float *top = c->p[2], *at = c->p[4], *tops = c->p[6], most;
	double *sum = c->p[3];
	for (int64_t r = lo; r < hi; r++) {
		const float *t = (const float *)c->p[0] + r * m;
		EL *e = c->p[5] ? (EL *)c->p[5] + r * m : 0;
		if (c->n[5]) top[r] = ISA(lce_max)(t, m), sum[r] = 0, at[r] = 0;
		double more = FN(lce_exp)(t, e, m, top[r], &most);
		if (most > top[r] + 40) {
			float by = expf(top[r] - most);
			top[r] = most, sum[r] *= by;
			if (e) {
				float *acc = (float *)c->p[7] + r * d;
				for (int64_t i = 0; i < d; i++) acc[i] *= by;
			}
			more = FN(lce_exp)(t, e, m, most, &most);
		}
		sum[r] += more;
		int64_t hit = labels[r] == c->n[2] ? -1 : labels[r] - c->n[3];
		if (hit >= 0 && hit < m) at[r] = t[hit];
		if (!e) continue;
		tops[r] = top[r];
		if (hit >= 0 && hit < m) ST1(e + hit, 0);
		if (labels[r] == c->n[2]) memset(e, 0, (size_t)m * sizeof *e);
	}
}

// lce_scale: x [rows d], tops, top, whole → xs [rows d]: x times the factor that turns a tile's e into gradients. n: rows, d.
static void FN(lce_scale_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t d = c->n[1];
	const float *tops = c->p[1], *top = c->p[2], *whole = c->p[3];
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * d;
		EL *xs = (EL *)c->p[4] + r * d;
		if (whole[r] == 0) {
			memset(xs, 0, (size_t)d * sizeof *xs);
			continue;
		}
		float by = tops[r] == top[r] ? whole[r] : whole[r] * expf(tops[r] - top[r]);
#define BODY(R, N, i)                                                                            \
	{                                                                                            \
		int n = N;                                                                               \
		UNROLL for (int u = 0; u < R; u++) ST(xs + (i) + u * VL, by * LD(x + (i) + u * VL));     \
	}
		SPAN(d, BODY);
#undef BODY
	}
}

// lce_dx: acc f32[rows d], w [classes d], labels, whole, hit → dx [rows d]. n: rows, d.
static void FN(lce_dx_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t d = c->n[1];
	const int32_t *labels = c->p[2];
	const float *whole = c->p[3], *hit = c->p[4];
	for (int64_t r = lo; r < hi; r++) {
		const float *acc = (const float *)c->p[0] + r * d;
		EL *dx = (EL *)c->p[5] + r * d;
		if (labels[r] == c->n[2]) {
			memset(dx, 0, (size_t)d * sizeof *dx);
			continue;
		}
		const EL *w = (const EL *)c->p[1] + labels[r] * d;
#define BODY(R, N, i)                                                                                                  \
	{                                                                                                                  \
		int n = N;                                                                                                     \
		UNROLL for (int u = 0; u < R; u++) ST(dx + (i) + u * VL, whole[r] * LF(acc + (i) + u * VL) + hit[r] * LD(w + (i) + u * VL)); \
	}
		SPAN(d, BODY);
#undef BODY
	}
}

// lce_hits: x [rows d], labels, hit → dw f32[classes d]: the rows' own classes. Threads divide the columns, because rows may share a class.
// n: rows, d, ignore_index.
static void FN(lce_hits_columns)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t d = c->n[1];
	const int32_t *labels = c->p[1];
	const float *hit = c->p[2];
	for (int64_t r = 0; r < c->n[0]; r++) {
		if (labels[r] == c->n[2]) continue;
		const EL *x = (const EL *)c->p[0] + r * d;
		float *dw = (float *)c->p[3] + labels[r] * d;
		for (int64_t i = lo; i < hi; i++) dw[i] += hit[r] * LD1(x + i);
	}
}

// lce_prob: tile, labels, lse, dloss → e [rows cols], the gradient by logits. n: rows, cols, ignore_index, first column.
static void FN(lce_prob_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	const int32_t *labels = c->p[1];
	const float *lse = c->p[2];
	float by = *(const float *)c->p[3];
	for (int64_t r = lo; r < hi; r++) {
		const float *t = (const float *)c->p[0] + r * m;
		EL *e = (EL *)c->p[4] + r * m;
		if (labels[r] == c->n[2]) {
			memset(e, 0, (size_t)m * sizeof *e);
			continue;
		}
		float l = lse[r];
#define BODY(R, N, i)                                                                                                \
	{                                                                                                                \
		int n = N;                                                                                                   \
		UNROLL for (int u = 0; u < R; u++) ST(e + (i) + u * VL, by * ISA(vexp)(LF(t + (i) + u * VL) - l));           \
	}
		SPAN(m, BODY);
#undef BODY
		int64_t hit = labels[r] - c->n[3];
		if (hit >= 0 && hit < m) ST1(e + hit, by * expm1f(t[hit] - l));
	}
}
