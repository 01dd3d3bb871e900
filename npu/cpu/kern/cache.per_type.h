// Attention against a cache of keys and values of one type, and writing to a float32 cache, for one instruction set.
#include "type.h"

// The scores of n ≤ CACHE_N keys, filled up to a whole vector with those of key n-1.
INLINE void FN(cached_scores)(float *s, const float *q, const EL *key, int64_t stride, int64_t n, int64_t d) {
	for (int64_t t = 0; t < n; t += VL) {
		V a[VL];
		for (int u = 0; u < VL; u++) {
			const EL *row = key + (t + u < n ? t + u : n - 1) * stride;
			V sum = {0};
			int64_t x = 0;
			for (; x + VL <= d; x += VL) sum += ISA(ld_f32)(q + x) * CAT(ld_, ISA(E))(row + x);
			if (x < d) sum += ISA(ld_f32)(q + x) * CAT(ldn_, ISA(E))(row + x, (int)(d - x));
			a[u] = sum;
		}
		ISA(st_f32)(s + t, ISA(sums)(a));
	}
}

// o = o·f + Σ p·v, R vectors wide; the last has n lanes.
#define GATHER(R, N, x)                                                                                     \
	{                                                                                                       \
		int n = N;                                                                                          \
		V acc[R];                                                                                           \
		UNROLL for (int u = 0; u < R; u++) acc[u] = ISA(ld_f32)(o + (x) + u * VL) * f;                      \
		for (int64_t t = 0; t < keys; t++)                                                                  \
			UNROLL for (int u = 0; u < R; u++) acc[u] += s[t] * LD(val + t * stride + (x) + u * VL);        \
		UNROLL for (int u = 0; u < R; u++) ISA(st_f32)(o + (x) + u * VL, acc[u]);                           \
	}

// A piece of the workspace, and further keys that its query sees.
static void FN(cached_block)(float *piece, const cached *k, const EL *key, const EL *val, int64_t keys) {
	int64_t stride = k->g * k->d, dp = k->dp;
	float s[CACHE_N], *o = piece + dp, top = piece[2 * dp], sum = 0;
	FN(cached_scores)(s, piece, key, stride, keys, k->d);
	for (int64_t t = 0; t < keys; t++)
		if (!(s[t] <= top)) top = s[t];
	float f = piece[2 * dp + 1] != 0 ? expf(piece[2 * dp] - top) : 0;
	for (int64_t t = 0; t < keys; t += VL) ISA(st_f32)(s + t, ISA(vexp)(ISA(ld_f32)(s + t) - top));
	for (int64_t t = 0; t < keys; t++) sum += s[t];
	SPAN(k->d, GATHER);
	piece[2 * dp] = top, piece[2 * dp + 1] = piece[2 * dp + 1] * f + sum;
}
#undef GATHER

// Units: query, key head, chunk.
static void FN(cached_units)(void *ctx, int64_t lo, int64_t hi) {
	const cached *k = ctx;
	for (int64_t i = lo; i < hi; i++) {
		int64_t chunk = i % k->chunks, g = i / k->chunks % k->g, row = i / k->chunks / k->g;
		float *pieces = (float *)k->c->ws + i * k->per * k->piece;
		int64_t sees = (int64_t)((const int32_t *)k->c->p[3])[row] + 1, end = (chunk + 1) * k->chunk;
		if (end > sees) end = sees;
		if (end > k->t) end = k->t;
		for (int64_t r = 0; r < k->per; r++) {
			float *p = pieces + r * k->piece;
			int64_t at = (row * k->h + g * k->per + r) * k->d;
			for (int64_t x = 0; x < k->dp; x++) {
				float v = 0;
				if (x < k->d) v = k->c->dt == KERN_BF16 ? ISA(ld1_bf16)((const uint16_t *)k->c->p[0] + at + x) : ((const float *)k->c->p[0])[at + x];
				p[x] = v * k->scale, p[k->dp + x] = 0;
			}
			p[2 * k->dp] = -INFINITY, p[2 * k->dp + 1] = 0;
		}
		for (int64_t t = chunk * k->chunk; t < end; t += CACHE_N) {
			int64_t keys = end - t < CACHE_N ? end - t : CACHE_N, at = ((row / k->s * k->t + t) * k->g + g) * k->d;
			for (int64_t r = 0; r < k->per; r++) FN(cached_block)(pieces + r * k->piece, k, (const EL *)k->c->p[1] + at, (const EL *)k->c->p[2] + at, keys);
		}
	}
}

static void FN(cache_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[3];
	for (int64_t i = lo * c->n[1]; i < hi * c->n[1]; i++) {
		int32_t pos = ((const int32_t *)c->p[2])[i];
		if (pos < 0) continue;
		const EL *x = (const EL *)c->p[1] + i * m;
		float *y = (float *)c->p[3] + (i / c->n[1] * c->n[2] + pos) * m;
		int64_t j = 0;
		for (; j + VL <= m; j += VL) ISA(st_f32)(y + j, CAT(ld_, ISA(E))(x + j));
		for (; j < m; j++) y[j] = LD1(x + j);
	}
}
