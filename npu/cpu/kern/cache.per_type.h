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

// Makes scores of further keys weights, and returns what the output so far is multiplied by, as the largest score may be another one now.
INLINE float FN(cached_factor)(float *piece, float *s, int64_t keys, int64_t dp) {
	float top = piece[2 * dp], sum = 0;
	V most = ISA(splat)(top); // of lanes behind the last key too, which are as large as that
	for (int64_t t = 0; t < keys; t += VL) {
		V x = ISA(ld_f32)(s + t);
		most = ISA(select)(x > most, x, most);
	}
	for (int u = 0; u < VL; u++)
		if (most[u] > top) top = most[u];
	float f = piece[2 * dp + 1] != 0 ? expf(piece[2 * dp] - top) : 0;
	for (int64_t t = 0; t < keys; t += VL) ISA(st_f32)(s + t, ISA(vexp)(ISA(ld_f32)(s + t) - top));
	for (int64_t t = 0; t < keys; t++) sum += s[t];
	piece[2 * dp] = top, piece[2 * dp + 1] = piece[2 * dp + 1] * f + sum;
	return f;
}

// A piece of the workspace, and further keys that its query sees.
static void FN(cached_block)(float *piece, const cached *k, const EL *key, const EL *val, int64_t keys) {
	int64_t stride = k->g * k->d, dp = k->dp;
	float s[CACHE_N], *o = piece + dp;
	FN(cached_scores)(s, piece, key, stride, keys, k->d);
	float f = FN(cached_factor)(piece, s, keys, dp);
	SPAN(k->d, GATHER);
}
#undef GATHER

// A piece of the workspace for head h of a query, before its first key.
static void FN(cached_begin)(float *p, const cached *k, int64_t row, int64_t h) {
	int64_t at = (row * k->h + h) * k->d;
	for (int64_t x = 0; x < k->dp; x++) {
		float v = 0;
		if (x < k->d) v = k->c->dt == KERN_BF16 ? ISA(ld1_bf16)((const uint16_t *)k->c->p[0] + at + x) : ((const float *)k->c->p[0])[at + x];
		p[x] = v * k->scale, p[k->dp + x] = 0;
	}
	p[2 * k->dp] = -INFINITY, p[2 * k->dp + 1] = 0;
}

// As cached_block for heads h…h+heads-1, heads ≤ CACHE_HEADS, of a query that is alone in its text: see Note [walked]. Numbers are the same bit by bit. d is a
// constant where this is inlined. Values come on their way while keys are used, and the keys of the next block, if there is one, while values are.
INLINE void FN(walked_block)(float *const *pieces, const cached *k, int64_t h, int64_t heads, const EL *key, const EL *val, int64_t keys, int64_t next,
							 const int64_t d) {
	enum { LINE = 64 / sizeof(EL) };
	int64_t stride = k->g * d, dp = k->dp, from[CACHE_HEADS];
	float s[CACHE_HEADS][CACHE_N];
	for (int64_t j = 0; j < heads; j++) from[j] = (h + j) / k->per * d;
	for (int64_t t = 0; t < keys; t += VL) {
		V a[CACHE_HEADS][VL];
		for (int u = 0; u < VL; u++) {
			int64_t row = (t + u < keys ? t + u : keys - 1) * stride;
			for (int64_t j = 0; j < heads; j++) {
				const EL *at = key + row + from[j], *later = val + row + from[j];
				const float *q = pieces[j];
				UNROLL for (int64_t x = 0; x < d; x += LINE) __builtin_prefetch(later + x);
				V sum = {0};
				int64_t x = 0;
				UNROLL for (; x + VL <= d; x += VL) sum += ISA(ld_f32)(q + x) * CAT(ld_, ISA(E))(at + x);
				if (x < d) sum += ISA(ld_f32)(q + x) * CAT(ldn_, ISA(E))(at + x, (int)(d - x));
				a[j][u] = sum;
			}
		}
		for (int64_t j = 0; j < heads; j++) ISA(st_f32)(s[j] + t, ISA(sums)(a[j]));
	}
	for (int64_t j = 0; j < heads; j++) {
		float f = FN(cached_factor)(pieces[j], s[j], keys, dp);
		for (int64_t x = 0; x < dp; x += VL) ISA(st_f32)(pieces[j] + dp + x, ISA(ld_f32)(pieces[j] + dp + x) * f);
	}
	for (int64_t t = 0; t < keys; t++)
		for (int64_t j = 0; j < heads; j++) {
			float *o = pieces[j] + dp;
			const EL *v = val + t * stride + from[j], *later = key + (CACHE_N + t) * stride + from[j];
			if (t < next) UNROLL for (int64_t x = 0; x < d; x += LINE) __builtin_prefetch(later + x);
			int64_t x = 0;
			UNROLL for (; x + VL <= d; x += VL) ISA(st_f32)(o + x, ISA(ld_f32)(o + x) + s[j][t] * CAT(ld_, ISA(E))(v + x));
			if (x < d) ISA(st_f32)(o + x, ISA(ld_f32)(o + x) + s[j][t] * CAT(ldn_, ISA(E))(v + x, (int)(d - x)));
		}
}

// The chunk's part of heads h…h+heads-1 of a query that is alone in its text.
static void FN(walked_heads)(const cached *k, int64_t row, int64_t chunk, int64_t h, int64_t heads) {
	float *pieces[CACHE_HEADS];
	int64_t sees = (int64_t)((const int32_t *)k->c->p[3])[row] + 1, end = (chunk + 1) * k->chunk;
	if (end > sees) end = sees;
	if (end > k->t) end = k->t;
	for (int64_t j = 0; j < heads; j++) {
		int64_t g = (h + j) / k->per, r = (h + j) % k->per;
		pieces[j] = (float *)k->c->ws + (((row * k->g + g) * k->chunks + chunk) * k->per + r) * k->piece;
		FN(cached_begin)(pieces[j], k, row, h + j);
	}
	for (int64_t t = chunk * k->chunk; t < end; t += CACHE_N) {
		int64_t keys = end - t < CACHE_N ? end - t : CACHE_N, next = end - t - keys, at = (row * k->t + t) * k->g * k->d;
		const EL *key = (const EL *)k->c->p[1] + at, *val = (const EL *)k->c->p[2] + at;
		switch (k->d) {
		case 48: FN(walked_block)(pieces, k, h, heads, key, val, keys, next, 48); break;
		case 64: FN(walked_block)(pieces, k, h, heads, key, val, keys, next, 64); break;
		case 128: FN(walked_block)(pieces, k, h, heads, key, val, keys, next, 128); break;
		default: FN(walked_block)(pieces, k, h, heads, key, val, keys, next, k->d);
		}
	}
}

// Units lo…hi-1 of texts with one query each: for each chunk the key heads that lie beside one another are taken together.
static void FN(walked_units)(const cached *k, int64_t lo, int64_t hi) {
	for (int64_t c = 0; c < k->chunks; c++) {
		int64_t i = lo > c ? (lo - c + k->chunks - 1) / k->chunks : 0, last = hi > c ? (hi - c + k->chunks - 1) / k->chunks : 0;
		while (i < last) { // key heads i…last-1, counted over all texts
			int64_t row = i / k->g, end = (row + 1) * k->g < last ? (row + 1) * k->g : last;
			for (int64_t h = (i - row * k->g) * k->per, all = (end - row * k->g) * k->per; h < all; h += CACHE_HEADS)
				FN(walked_heads)(k, row, c, h, all - h < CACHE_HEADS ? all - h : CACHE_HEADS);
			i = end;
		}
	}
}

// Units: query, key head, chunk.
static void FN(cached_units)(void *ctx, int64_t lo, int64_t hi) {
	const cached *k = ctx;
	if (k->s == 1) {
		FN(walked_units)(k, lo, hi);
		return;
	}
	for (int64_t i = lo; i < hi; i++) {
		int64_t chunk = i % k->chunks, g = i / k->chunks % k->g, row = i / k->chunks / k->g;
		float *pieces = (float *)k->c->ws + i * k->per * k->piece;
		int64_t sees = (int64_t)((const int32_t *)k->c->p[3])[row] + 1, end = (chunk + 1) * k->chunk;
		if (end > sees) end = sees;
		if (end > k->t) end = k->t;
		for (int64_t r = 0; r < k->per; r++) FN(cached_begin)(pieces + r * k->piece, k, row, g * k->per + r);
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
