// Batch normalisation for one instruction set and element type E (C type EL). Loops run over blocks of R rows, and within a block over the
// channels, so that per-channel values (shift, sums, factors) are loaded once per block.
#include "type.h"
#define LDF(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))
#define STF(p, v) (n == VL ? ISA(st_f32)(p, v) : ISA(stn_f32)(p, v, n))
#define TILE 2048
#define ALIGNED __attribute__((aligned(64)))

// COLUMNS runs BODY(row, R, n, column) over w channels of R rows; the last, incomplete vector is handled row by row.
#define COLUMNS(R, w, BODY)                                                     \
	do {                                                                        \
		int64_t j_ = 0;                                                         \
		for (; j_ + VL <= (w); j_ += VL) BODY(0, R, VL, j_);                    \
		if (j_ < (w))                                                           \
			for (int u_ = 0; u_ < R; u_++) BODY(u_, 1, (int)((w)-j_), j_);      \
	} while (0)

// ROWS runs BODY over all columns of all rows, four rows at a time.
#define ROWS(rows, w, BODY)                                                     \
	do {                                                                        \
		int64_t r = 0;                                                          \
		for (; r + 4 <= (rows); r += 4) COLUMNS(4, w, BODY);                    \
		for (; r < (rows); r++) COLUMNS(1, w, BODY);                            \
	} while (0)

// Four rows of such a length are four streams in one or two pages, of which the hardware guesses the next lines wrong: 256 channels took twice the time.
#define STREAMS(ld) ((ld) * (int64_t)sizeof(EL) > 256 && (ld) * (int64_t)sizeof(EL) <= 2048)

// EACH is ROWS for bodies in which rows share no sum: such rows come one by one, in the order of memory.
#define EACH(rows, w, BODY)                                                     \
	do {                                                                        \
		if (!STREAMS(w)) ROWS(rows, w, BODY);                                   \
		else                                                                    \
			for (int64_t r = 0; r < (rows); r++) COLUMNS(1, w, BODY);           \
	} while (0)

// AHEAD, in a body of ROWS for R rows of ld elements from p and for column j, asks for a part of the next four rows. Together the bodies ask for line after
// line.
#define AHEAD(R, p, ld, j)                                                                                    \
	do {                                                                                                      \
		const char *a_ = (const char *)((p) + 4 * ((ld) + (j)));                                              \
		if ((R) == 4 && STREAMS(ld))                                                                          \
			UNROLL for (int b_ = 0; b_ < 4 * VL * (int)sizeof(EL); b_ += 64) __builtin_prefetch(a_ + b_);     \
	} while (0)

// Planes (w = 1) and blocks of w channels are runs of adjacent elements (SPAN), whose parameters and sums stay in registers: one set for each vector of 16
// elements, in which the channels of a narrower block repeat. SET is the set of vector u of R at element i.
#define SETS (16 / VL)
#define SET(R, i, u) (VL == 16 ? 0 : (R) == 4 ? (u) % SETS : (int)((i) / VL % SETS))
INLINE void FN(bn_sets)(V *set, const float *p, int64_t w) {
	float t[16];
	for (int i = 0; i < 16; i++) t[i] = p[i & (w - 1)];
	UNROLL for (int j = 0; j < SETS; j++) set[j] = ISA(ld_f32)(t + j * VL);
}
// Sums of the vectors u = 0…3 of SPAN, into w floats.
INLINE void FN(bn_fold)(const V *s, float *sums, int64_t w) {
	if (w == 1) {
		*sums = ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
		return;
	}
	float all[16];
	for (int j = 0; j < SETS; j++) {
		V t = s[j];
		for (int u = j + SETS; u < 4; u += SETS) t += s[u];
		ISA(st_f32)(all + j * VL, t);
	}
	memcpy(sums, all, (size_t)w * 4);
	for (int64_t i = w; i < 16; i++) sums[i & (w - 1)] += all[i];
}
// The sum to which vector u of R adds: vectors of one set may share it.
#define SLOT(R, i, u) ((R) == 4 ? (u) : SET(R, i, u))

// Forward, first pass. Sums are taken around a shift k, the mean of the first rows: without one, squares cancel if the mean is large
// compared to the spread.

INLINE void FN(bn_stats_body)(const EL *x, int64_t ld, const float *k, float *s, float *q, int R, int n) {
	V kk = LDF(k), d[4], t, e;
	UNROLL for (int u = 0; u < R; u++) d[u] = LD(x + u * ld) - kk;
	if (R == 4) { // in pairs: the chain from block to block is one addition long
		t = (d[0] + d[1]) + (d[2] + d[3]);
		e = (d[0] * d[0] + d[1] * d[1]) + (d[2] * d[2] + d[3] * d[3]);
	} else
		t = d[0], e = d[0] * d[0];
	STF(s, LDF(s) + t);
	STF(q, LDF(q) + e);
}

static void FN(bn_stats_tile)(const EL *x, int64_t rows, int64_t ld, int64_t w, float *mean, float *m2) {
	float k[TILE] ALIGNED, s[TILE] ALIGNED, q[TILE] ALIGNED;
	memset(k, 0, (size_t)w * 4), memset(s, 0, (size_t)w * 4), memset(q, 0, (size_t)w * 4);
	int64_t first = rows < 8 ? rows : 8;
	const V inv_first = ISA(splat)(1 / (float)first), inv = ISA(splat)(1 / (float)rows);
#define BODY(u, R, N, j)                                                                              \
	{                                                                                                 \
		int n = N;                                                                                    \
		STF(k + (j), LDF(k + (j)) + LD(x + r * ld + (j)) * inv_first);                                \
	}
	for (int64_t r = 0; r < first; r++) COLUMNS(1, w, BODY);
#undef BODY
#define BODY(u, R, n, j)                                                                                  \
	{                                                                                                     \
		AHEAD(R, x + r * ld, ld, j);                                                                      \
		FN(bn_stats_body)(x + (r + (u)) * ld + (j), ld, k + (j), s + (j), q + (j), R, n);                 \
	}
	ROWS(rows, w, BODY);
#undef BODY
#define BODY(u, R, N, j)                                                                              \
	{                                                                                                 \
		int n = N;                                                                                    \
		V ss = LDF(s + (j)), t = ss * inv;                                                            \
		STF(mean + (j), LDF(k + (j)) + t);                                                            \
		STF(m2 + (j), ISA(vrelu)(LDF(q + (j)) - ss * t));                                             \
	}
	COLUMNS(1, w, BODY);
#undef BODY
}

INLINE void FN(bn_stats_run)(const EL *x, int64_t rows, int64_t w, float *mean, float *m2) {
	float k[16] = {0}, sum[16], sq[16];
	int64_t first = rows < 4 ? rows : 4, m = rows * w;
	for (int64_t i = 0; i < first; i++)
		for (int64_t j = 0; j < w; j++) k[j] += LD1(x + i * w + j);
	for (int64_t j = 0; j < w; j++) k[j] /= (float)first;
	V kk[SETS], s[4] = {0}, q[4] = {0};
	FN(bn_sets)(kk, k, w);
#define BODY(R, N, i)                                                                   \
	{                                                                                   \
		int n = N;                                                                      \
		UNROLL for (int u = 0; u < R; u++) {                                            \
			V d = ISA(keep)(LD(x + (i) + u * VL) - kk[SET(R, i, u)], n);                \
			s[SLOT(R, i, u)] += d, q[SLOT(R, i, u)] += d * d;                           \
		}                                                                               \
	}
	SPAN(m, BODY);
#undef BODY
	FN(bn_fold)(s, sum, w);
	FN(bn_fold)(q, sq, w);
	float inv = 1 / (float)rows;
	for (int64_t j = 0; j < w; j++) {
		float t = sum[j] * inv, v = sq[j] - sum[j] * t;
		mean[j] = k[j] + t;
		m2[j] = v < 0 ? 0 : v;
	}
}

static void FN(bn_stats)(const bn_pass *p, int64_t g, int64_t i) {
	int64_t rows, w = p->t.width;
	const EL *x = (const EL *)p->cmd->p[0] + bn_item(&p->t, g, i, &rows);
	float *s = bn_sums(&p->t, p->sums, g, i);
	if (p->t.layout != KERN_ROWS)
		FN(bn_stats_run)(x, rows, w, s, s + w);
	else
		for (int64_t j = 0; j < w; j += TILE) FN(bn_stats_tile)(x + j, rows, w, w - j < TILE ? w - j : TILE, s + j, s + w + j);
}

// Forward, second pass: y = relu?(x*a + b + res?). y may be x or res.

INLINE void FN(bn_norm_body)(const EL *x, const EL *res, EL *y, int64_t ld, V a, V b, int add, int relu, int R, int n) {
	V t[4];
	UNROLL for (int u = 0; u < R; u++) {
		t[u] = LD(x + u * ld) * a + b;
		if (add) t[u] += LD(res + u * ld);
		if (relu) t[u] = ISA(vrelu)(t[u]);
	}
	UNROLL for (int u = 0; u < R; u++) ST(y + u * ld, t[u]);
}

INLINE void FN(bn_norm_item)(const EL *x, const EL *res, EL *y, int64_t rows, int64_t w, const float *a, const float *b, int layout, int add, int relu) {
	if (layout != KERN_ROWS) {
		V aa[SETS], bb[SETS];
		FN(bn_sets)(aa, a, w);
		FN(bn_sets)(bb, b, w);
#define BODY(R, n, i)                                                                                                                         \
	UNROLL for (int u = 0; u < R; u++)                                                                                                        \
		FN(bn_norm_body)(x + (i) + u * VL, res + (i) + u * VL, y + (i) + u * VL, 0, aa[SET(R, i, u)], bb[SET(R, i, u)], add, relu, 1, n)
		SPAN(rows * w, BODY);
#undef BODY
		return;
	}
#define BODY(u, R, N, j)                                                                                             \
	{                                                                                                                \
		int n = N;                                                                                                   \
		int64_t at = (r + (u)) * w + (j);                                                                            \
		FN(bn_norm_body)(x + at, res + at, y + at, w, LDF(a + (j)), LDF(b + (j)), add, relu, R, n);                  \
	}
	EACH(rows, w, BODY);
#undef BODY
}

static void FN(bn_norm)(const bn_pass *p, int64_t g, int64_t i) {
	int64_t rows, w = p->t.width, at = bn_item(&p->t, g, i, &rows);
	const kern_cmd *c = p->cmd;
	const EL *x = (const EL *)c->p[0] + at, *res = (const EL *)c->p[5] + at;
	EL *y = (EL *)c->p[6] + at;
	const float *a = p->par[0] + g * w, *b = p->par[1] + g * w;
	int layout = p->t.layout, flags = c->flags & (BN_ADD | BN_RELU);
#if VL != 4
	if (flags == BN_RELU) {
		FN(bn_norm_item)(x, res, y, rows, w, a, b, layout, 0, 1);
		return;
	}
#endif
	FN(bn_norm_item)(x, res, y, rows, w, a, b, layout, flags & BN_ADD, flags & BN_RELU);
}

// Backward. g = dy + dy2?, 0 where y <= 0 if mask is MASK_Y. If mask is MASK_X, y is known to be relu(x*ma + mb), and its memory is not read.

INLINE V FN(bn_grad)(const EL *dy, const EL *dy2, const EL *y, V x, V ma, V mb, int mask, int sum, int n) {
	V g = LD(dy);
	if (sum) g += LD(dy2);
	if (mask == MASK_X) g = ISA(select)(x * ma + mb <= (V){0}, (V){0}, g);
	if (mask == MASK_Y) g = ISA(select)(LD(y) <= (V){0}, (V){0}, g);
	return g;
}

// First pass: Σ g and Σ g·(x-mean); g is written to dres if add.
INLINE void FN(bn_dots_body)(const bn_place *p, int64_t at, int64_t ld, V mean, V ma, V mb, V *s, V *q, int mask, int sum, int add, int R, int n) {
	const EL *dy = (const EL *)p->dy + at, *dy2 = (const EL *)p->dy2 + at, *x = (const EL *)p->x + at, *y = (const EL *)p->y + at;
	EL *dres = (EL *)p->dres + at;
	V g[4], d[4];
	UNROLL for (int u = 0; u < R; u++) {
		V t = LD(x + u * ld);
		g[u] = FN(bn_grad)(dy + u * ld, dy2 + u * ld, y + u * ld, t, ma, mb, mask, sum, n);
		d[u] = t - mean;
	}
	if (R == 4) {
		*s += (g[0] + g[1]) + (g[2] + g[3]);
		*q += (g[0] * d[0] + g[1] * d[1]) + (g[2] * d[2] + g[3] * d[3]);
	} else
		*s += g[0], *q += g[0] * d[0];
	if (add) UNROLL for (int u = 0; u < R; u++) ST(dres + u * ld, g[u]);
}

INLINE void FN(bn_dots_tile)(const bn_place *p, int64_t rows, int64_t ld, int64_t c0, int64_t w, float *sums, float *dots, int mask, int sum, int add) {
	float s[TILE] ALIGNED, q[TILE] ALIGNED;
	memset(s, 0, (size_t)w * 4), memset(q, 0, (size_t)w * 4);
	const float *mean = p->mean + c0, *ma = p->ma + c0, *mb = p->mb + c0;
#define BODY(u, R, N, j)                                                                                                                  \
	{                                                                                                                                     \
		int n = N;                                                                                                                        \
		V ss = LDF(s + (j)), qq = LDF(q + (j)), aa = {0}, bb = {0};                                                                       \
		if (mask == MASK_X) aa = LDF(ma + (j)), bb = LDF(mb + (j));                                                                       \
		AHEAD(R, (const EL *)p->x + r * ld, ld, j);                                                                                       \
		AHEAD(R, (const EL *)p->dy + r * ld, ld, j);                                                                                      \
		if (sum) AHEAD(R, (const EL *)p->dy2 + r * ld, ld, j);                                                                            \
		if (mask == MASK_Y) AHEAD(R, (const EL *)p->y + r * ld, ld, j);                                                                   \
		FN(bn_dots_body)(p, (r + (u)) * ld + c0 + (j), ld, LDF(mean + (j)), aa, bb, &ss, &qq, mask, sum, add, R, n);                      \
		STF(s + (j), ss);                                                                                                                 \
		STF(q + (j), qq);                                                                                                                 \
	}
	ROWS(rows, w, BODY);
#undef BODY
	memcpy(sums, s, (size_t)w * 4);
	memcpy(dots, q, (size_t)w * 4);
}

INLINE void FN(bn_dots_run)(const bn_place *p, int64_t m, int64_t w, float *sums, float *dots, int mask, int sum, int add) {
	V mm[SETS], s[4] = {0}, q[4] = {0}, aa[SETS] = {0}, bb[SETS] = {0};
	FN(bn_sets)(mm, p->mean, w);
	if (mask == MASK_X) FN(bn_sets)(aa, p->ma, w), FN(bn_sets)(bb, p->mb, w);
#define BODY(R, n, i)                                                                                                                                  \
	UNROLL for (int u = 0; u < R; u++) {                                                                                                               \
		int k = SET(R, i, u), l = SLOT(R, i, u);                                                                                                       \
		FN(bn_dots_body)(p, (i) + u * VL, 0, mm[k], aa[k], bb[k], s + l, q + l, mask, sum, add, 1, n);                                                 \
	}
	SPAN(m, BODY);
#undef BODY
	FN(bn_fold)(s, sums, w);
	FN(bn_fold)(q, dots, w);
}

// The common cases are compiled separately (not in the baseline build); the others decide in the loop: a predicted branch is cheap compared to
// memory, and code for all cases takes long to compile.
#if VL == 4
#define COMMON(CASE)
#else
#define COMMON(CASE)                                            \
	case 0: CASE(MASK_NONE, 0, 0); break;                       \
	case BN_RELU | BN_OWN: CASE(MASK_X, 0, 0); break;           \
	case BN_RELU | BN_SUM | BN_ADD: CASE(MASK_Y, 1, 1); break;
#endif

static void FN(bn_dots)(const bn_pass *p, int64_t g, int64_t i) {
	int64_t rows, w = p->t.width;
	bn_place at = bn_place_of(p, g, i, sizeof(EL), &rows);
	float *s = bn_sums(&p->t, p->sums, g, i);
	int flags = p->cmd->flags;
	if (p->t.layout != KERN_ROWS) {
#define CASE(mask, sum, add) FN(bn_dots_run)(&at, rows * w, w, s, s + w, mask, sum, add)
		switch (flags) {
			COMMON(CASE)
		default: CASE(bn_mask(flags), (flags & BN_SUM) != 0, (flags & BN_ADD) != 0);
		}
#undef CASE
		return;
	}
	for (int64_t j = 0; j < w; j += TILE) {
		int64_t tile = w - j < TILE ? w - j : TILE;
#define CASE(mask, sum, add) FN(bn_dots_tile)(&at, rows, w, j, tile, s + j, s + w + j, mask, sum, add)
		switch (flags) {
			COMMON(CASE)
		default: CASE(bn_mask(flags), (flags & BN_SUM) != 0, (flags & BN_ADD) != 0);
		}
#undef CASE
	}
}
#undef COMMON

// Second pass: dx = k·g + b·x + a. dx may be dy or dy2.
INLINE void FN(bn_dx_body)(const bn_place *p, int64_t at, int64_t ld, V k, V b, V a, V ma, V mb, int mask, int sum, int R, int n) {
	const EL *dy = (const EL *)p->dy + at, *dy2 = (const EL *)p->dy2 + at, *x = (const EL *)p->x + at, *y = (const EL *)p->y + at;
	EL *dx = (EL *)p->dx + at;
	V t[4];
	UNROLL for (int u = 0; u < R; u++) {
		V v = LD(x + u * ld);
		t[u] = FN(bn_grad)(dy + u * ld, dy2 + u * ld, y + u * ld, v, ma, mb, mask, sum, n) * k + (v * b + a);
	}
	UNROLL for (int u = 0; u < R; u++) ST(dx + u * ld, t[u]);
}

INLINE void FN(bn_dx_item)(const bn_place *p, int64_t rows, int64_t w, const float *k, const float *b, const float *a, int layout, int mask, int sum) {
	if (layout != KERN_ROWS) {
		V kk[SETS], bb[SETS], aa[SETS], ma[SETS] = {0}, mb[SETS] = {0};
		FN(bn_sets)(kk, k, w), FN(bn_sets)(bb, b, w), FN(bn_sets)(aa, a, w);
		if (mask == MASK_X) FN(bn_sets)(ma, p->ma, w), FN(bn_sets)(mb, p->mb, w);
#define BODY(R, n, i)                                                                                                                         \
	UNROLL for (int u = 0; u < R; u++) {                                                                                                      \
		int l = SET(R, i, u);                                                                                                                 \
		FN(bn_dx_body)(p, (i) + u * VL, 0, kk[l], bb[l], aa[l], ma[l], mb[l], mask, sum, 1, n);                                               \
	}
		SPAN(rows * w, BODY);
#undef BODY
		return;
	}
#define BODY(u, R, N, j)                                                                                                                         \
	{                                                                                                                                            \
		int n = N;                                                                                                                               \
		V ma = {0}, mb = {0};                                                                                                                    \
		if (mask == MASK_X) ma = LDF(p->ma + (j)), mb = LDF(p->mb + (j));                                                                        \
		FN(bn_dx_body)(p, (r + (u)) * w + (j), w, LDF(k + (j)), LDF(b + (j)), LDF(a + (j)), ma, mb, mask, sum, R, n);                            \
	}
	EACH(rows, w, BODY);
#undef BODY
}

static void FN(bn_dx)(const bn_pass *p, int64_t g, int64_t i) {
	int64_t rows, w = p->t.width;
	bn_place at = bn_place_of(p, g, i, sizeof(EL), &rows);
	const float *k = p->par[0] + g * w, *b = p->par[1] + g * w, *a = p->par[2] + g * w;
	int flags = p->cmd->flags, layout = p->t.layout;
	if (flags & BN_ADD) at.dy = at.dres, flags = 0; // the first pass wrote g there
#define CASE(mask, sum) FN(bn_dx_item)(&at, rows, w, k, b, a, layout, mask, sum)
	switch (flags) {
	case 0: CASE(MASK_NONE, 0); break;
#if VL != 4
	case BN_RELU | BN_OWN: CASE(MASK_X, 0); break;
#endif
	default: CASE(bn_mask(flags), (flags & BN_SUM) != 0);
	}
#undef CASE
}

#undef SETS
#undef SET
#undef SLOT
#undef COLUMNS
#undef ROWS
#undef AHEAD
#undef EACH
#undef STREAMS
#undef TILE
#undef ALIGNED
#undef LDF
#undef STF
