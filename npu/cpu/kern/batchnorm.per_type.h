// Batch normalisation for one instruction set and element type E (C type EL). Loops run over blocks of R rows, and within a block over the
// channels, so that per-channel values (shift, sums, factors) are loaded once per block.
#include "type.h"
#define LDF(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))
#define STF(p, v) (n == VL ? ISA(st_f32)(p, v) : ISA(stn_f32)(p, v, n))
#define TILE 2048
#define ALIGNED __attribute__((aligned(64)))

// A row is taken in pairs of vectors (Note [pairs] in vec.h), P = 2, then a vector and the rest, P = 1. What belongs to channels is in the same order, which
// bn_order makes and bn_unorder undoes.
INLINE void FN(bn_ld)(const EL *p, V *v, int P, int n) {
	if (P == 2) LD2(p, v);
	else v[0] = LD(p);
}
INLINE void FN(bn_ldf)(const float *p, V *v, int P, int n) {
	v[0] = LDF(p);
	if (P == 2) v[1] = ISA(ld_f32)(p + VL);
}
INLINE void FN(bn_stf)(float *p, const V *v, int P, int n) {
	STF(p, v[0]);
	if (P == 2) ISA(st_f32)(p + VL, v[1]);
}
static void FN(bn_order)(float *to, const float *p, int64_t w) {
	int64_t j = 0;
	for (; j + 2 * VL <= w; j += 2 * VL) {
		V v[2] = {ISA(ld_f32)(p + j), ISA(ld_f32)(p + j + VL)};
		CAT(pair_, ISA(E))(v);
		ISA(st_f32)(to + j, v[0]), ISA(st_f32)(to + j + VL, v[1]);
	}
	memcpy(to + j, p + j, (size_t)(w - j) * 4);
}
static void FN(bn_unorder)(float *to, const float *p, int64_t w) {
	int64_t j = 0;
	for (; j + 2 * VL <= w; j += 2 * VL) {
		V v[2] = {ISA(ld_f32)(p + j), ISA(ld_f32)(p + j + VL)};
		CAT(unpair_, ISA(E))(v);
		ISA(st_f32)(to + j, v[0]), ISA(st_f32)(to + j + VL, v[1]);
	}
	memcpy(to + j, p + j, (size_t)(w - j) * 4);
}

// COLUMNS runs BODY(row, R, P, n, column) over w channels of R rows; the last, incomplete vector is handled row by row.
#define COLUMNS(R, w, BODY)                                                     \
	do {                                                                        \
		int64_t j_ = 0;                                                         \
		for (; j_ + 2 * VL <= (w); j_ += 2 * VL) BODY(0, R, 2, VL, j_);         \
		if (j_ + VL <= (w)) {                                                   \
			BODY(0, R, 1, VL, j_);                                              \
			j_ += VL;                                                           \
		}                                                                       \
		if (j_ < (w))                                                           \
			for (int u_ = 0; u_ < R; u_++) BODY(u_, 1, 1, (int)((w)-j_), j_);   \
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

// AHEAD, in a body of ROWS for R rows of ld elements from p and for column j, asks for a part of four rows that come about 8 KiB later, so early that the
// second cache has them then. Together the bodies ask for line after line.
#define AHEAD(R, P, p, ld, j)                                                                                     \
	do {                                                                                                          \
		const char *a_ = (const char *)((p) + 4 * ((ld) + (j))) + 6144;                                           \
		if ((R) == 4 && STREAMS(ld))                                                                              \
			UNROLL for (int b_ = 0; b_ < 4 * P * VL * (int)sizeof(EL); b_ += 64) __builtin_prefetch(a_ + b_, 0, 2); \
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

INLINE void FN(bn_stats_body)(const EL *x, int64_t ld, const float *k, float *s, float *q, int R, int P, int n) {
	V kk[2], ss[2], qq[2], d[4][2];
	FN(bn_ldf)(k, kk, P, n), FN(bn_ldf)(s, ss, P, n), FN(bn_ldf)(q, qq, P, n);
	UNROLL for (int u = 0; u < R; u++) {
		FN(bn_ld)(x + u * ld, d[u], P, n);
		UNROLL for (int v = 0; v < P; v++) d[u][v] -= kk[v];
	}
	UNROLL for (int v = 0; v < P; v++) {
		if (R == 4) { // in pairs: the chain from block to block is one addition long
			ss[v] += (d[0][v] + d[1][v]) + (d[2][v] + d[3][v]);
			qq[v] += (d[0][v] * d[0][v] + d[1][v] * d[1][v]) + (d[2][v] * d[2][v] + d[3][v] * d[3][v]);
		} else
			ss[v] += d[0][v], qq[v] += d[0][v] * d[0][v];
	}
	FN(bn_stf)(s, ss, P, n), FN(bn_stf)(q, qq, P, n);
}

static void FN(bn_stats_tile)(const EL *x, int64_t rows, int64_t ld, int64_t w, float *mean, float *m2) {
	float k[TILE] ALIGNED, s[TILE] ALIGNED, q[TILE] ALIGNED;
	memset(k, 0, (size_t)w * 4), memset(s, 0, (size_t)w * 4), memset(q, 0, (size_t)w * 4);
	int64_t first = rows < 8 ? rows : 8;
	const V inv_first = ISA(splat)(1 / (float)first), inv = ISA(splat)(1 / (float)rows);
#define BODY(u, R, P, n, j)                                                                           \
	{                                                                                                 \
		V kk[2], v[2];                                                                                \
		FN(bn_ldf)(k + (j), kk, P, n), FN(bn_ld)(x + r * ld + (j), v, P, n);                          \
		UNROLL for (int i = 0; i < P; i++) kk[i] += v[i] * inv_first;                                 \
		FN(bn_stf)(k + (j), kk, P, n);                                                                \
	}
	for (int64_t r = 0; r < first; r++) COLUMNS(1, w, BODY);
#undef BODY
#define BODY(u, R, P, n, j)                                                                               \
	{                                                                                                     \
		AHEAD(R, P, x + r * ld, ld, j);                                                                   \
		FN(bn_stats_body)(x + (r + (u)) * ld + (j), ld, k + (j), s + (j), q + (j), R, P, n);              \
	}
	ROWS(rows, w, BODY);
#undef BODY
#define BODY(u, R, P, n, j)                                                                           \
	{                                                                                                 \
		V kk[2], ss[2], qq[2];                                                                        \
		FN(bn_ldf)(k + (j), kk, P, n), FN(bn_ldf)(s + (j), ss, P, n), FN(bn_ldf)(q + (j), qq, P, n);  \
		UNROLL for (int i = 0; i < P; i++) {                                                          \
			V t = ss[i] * inv;                                                                        \
			kk[i] += t, qq[i] = ISA(vrelu)(qq[i] - ss[i] * t);                                        \
		}                                                                                             \
		FN(bn_stf)(k + (j), kk, P, n), FN(bn_stf)(q + (j), qq, P, n);                                 \
	}
	COLUMNS(1, w, BODY);
#undef BODY
	FN(bn_unorder)(mean, k, w), FN(bn_unorder)(m2, q, w);
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

INLINE V FN(bn_norm_of)(V x, V res, V a, V b, int add, int relu) {
	V t = x * a + b;
	if (add) t += res;
	return relu ? ISA(vrelu)(t) : t;
}
INLINE void FN(bn_norm_body)(const EL *x, const EL *res, EL *y, int64_t ld, const V *a, const V *b, int add, int relu, int past, int R, int P, int n) {
	V t[4][2];
	UNROLL for (int u = 0; u < R; u++) {
		V e[2] = {{0}, {0}};
		FN(bn_ld)(x + u * ld, t[u], P, n);
		if (add) FN(bn_ld)(res + u * ld, e, P, n);
		UNROLL for (int v = 0; v < P; v++) t[u][v] = FN(bn_norm_of)(t[u][v], e[v], a[v], b[v], add, relu);
	}
	UNROLL for (int u = 0; u < R; u++) {
		if (P == 1) ST(y + u * ld, t[u][0]);
		else if (past) PAST2(y + u * ld, t[u]);
		else ST2(y + u * ld, t[u]);
	}
}

INLINE void FN(bn_norm_item)(const EL *x, const EL *res, EL *y, int64_t rows, int64_t w, const float *a, const float *b, int layout, int add, int relu,
                             int past) {
	if (layout != KERN_ROWS) {
		V aa[SETS], bb[SETS];
		FN(bn_sets)(aa, a, w);
		FN(bn_sets)(bb, b, w);
#define BODY(R, N, i)                                                                                                                         \
	UNROLL for (int u = 0; u < R; u++) {                                                                                                      \
		int n = N, k = SET(R, i, u);                                                                                                          \
		int64_t at = (i) + u * VL;                                                                                                            \
		V t = {0};                                                                                                                            \
		if (add) t = LD(res + at);                                                                                                            \
		t = FN(bn_norm_of)(LD(x + at), t, aa[k], bb[k], add, relu);                                                                           \
		if (past && (R) == 4 && sizeof(EL) == 4) ISA(past)(y + at, t);                                                                        \
		else ST(y + at, t);                                                                                                                   \
	}
		SPAN(rows * w, BODY);
#undef BODY
		return;
	}
	float ao[TILE] ALIGNED, bo[TILE] ALIGNED;
	for (int64_t c = 0; c < w; c += TILE, x += TILE, res += TILE, y += TILE, a += TILE, b += TILE) {
		int64_t tile = w - c < TILE ? w - c : TILE;
		FN(bn_order)(ao, a, tile), FN(bn_order)(bo, b, tile);
#define BODY(u, R, P, n, j)                                                                                          \
	{                                                                                                                \
		int64_t at = (r + (u)) * w + (j);                                                                            \
		V aa[2], bb[2];                                                                                              \
		FN(bn_ldf)(ao + (j), aa, P, n), FN(bn_ldf)(bo + (j), bb, P, n);                                              \
		FN(bn_norm_body)(x + at, res + at, y + at, w, aa, bb, add, relu, past, R, P, n);                             \
	}
		EACH(rows, tile, BODY);
#undef BODY
	}
}

// Whether whole lines begin at the rows of an item that the second pass writes past the caches.
static int FN(bn_past)(const bn_pass *p, const void *to) {
	return p->past && (uintptr_t)to % 64 == 0 && (p->t.layout == KERN_ROWS ? p->t.width * sizeof(EL) % 64 == 0 : sizeof(EL) == 4);
}

static void FN(bn_norm)(const bn_pass *p, int64_t g, int64_t i) {
	int64_t rows, w = p->t.width, at = bn_item(&p->t, g, i, &rows);
	const kern_cmd *c = p->cmd;
	const EL *x = (const EL *)c->p[0] + at, *res = (const EL *)c->p[5] + at;
	EL *y = (EL *)c->p[6] + at;
	const float *a = p->par[0] + g * w, *b = p->par[1] + g * w;
	int layout = p->t.layout, flags = c->flags & (BN_ADD | BN_RELU);
	int past = FN(bn_past)(p, y);
#if VL != 4
	if (flags == BN_RELU) {
		FN(bn_norm_item)(x, res, y, rows, w, a, b, layout, 0, 1, past);
		if (past) ISA(past_end)();
		return;
	}
#endif
	FN(bn_norm_item)(x, res, y, rows, w, a, b, layout, flags & BN_ADD, flags & BN_RELU, past);
	if (past) ISA(past_end)();
}

// Backward. g = dy + dy2?, 0 where y <= 0 if mask is MASK_Y. If mask is MASK_X, y is known to be relu(x*ma + mb), and its memory is not read.

INLINE V FN(bn_grad)(V g, V g2, V y, V x, V ma, V mb, int mask, int sum) {
	if (sum) g += g2;
	if (mask == MASK_X) g = ISA(select)(x * ma + mb <= (V){0}, (V){0}, g);
	if (mask == MASK_Y) g = ISA(select)(y <= (V){0}, (V){0}, g);
	return g;
}
// x and g of a row.
INLINE void FN(bn_point)(const bn_place *p, int64_t at, const V *ma, const V *mb, V *x, V *g, int mask, int sum, int P, int n) {
	V g2[2] = {{0}, {0}}, y[2] = {{0}, {0}};
	FN(bn_ld)((const EL *)p->x + at, x, P, n), FN(bn_ld)((const EL *)p->dy + at, g, P, n);
	if (sum) FN(bn_ld)((const EL *)p->dy2 + at, g2, P, n);
	if (mask == MASK_Y) FN(bn_ld)((const EL *)p->y + at, y, P, n);
	UNROLL for (int v = 0; v < P; v++) g[v] = FN(bn_grad)(g[v], g2[v], y[v], x[v], ma[v], mb[v], mask, sum);
}
INLINE void FN(bn_st)(EL *p, const V *v, int P, int n) {
	if (P == 2) ST2(p, v);
	else ST(p, v[0]);
}

// First pass: Σ g and Σ g·(x-mean); g is written to dres if add.
INLINE void FN(bn_dots_body)(const bn_place *p, int64_t at, int64_t ld, const V *mean, const V *ma, const V *mb, V *s, V *q, int mask, int sum, int add, int R,
                             int P, int n) {
	V g[4][2], d[4][2];
	UNROLL for (int u = 0; u < R; u++) {
		FN(bn_point)(p, at + u * ld, ma, mb, d[u], g[u], mask, sum, P, n);
		UNROLL for (int v = 0; v < P; v++) d[u][v] -= mean[v];
	}
	UNROLL for (int v = 0; v < P; v++) {
		if (R == 4) {
			s[v] += (g[0][v] + g[1][v]) + (g[2][v] + g[3][v]);
			q[v] += (g[0][v] * d[0][v] + g[1][v] * d[1][v]) + (g[2][v] * d[2][v] + g[3][v] * d[3][v]);
		} else
			s[v] += g[0][v], q[v] += g[0][v] * d[0][v];
	}
	if (add) UNROLL for (int u = 0; u < R; u++) FN(bn_st)((EL *)p->dres + at + u * ld, g[u], P, n);
}

INLINE void FN(bn_dots_tile)(const bn_place *p, int64_t rows, int64_t ld, int64_t c0, int64_t w, float *sums, float *dots, int mask, int sum, int add) {
	float s[TILE] ALIGNED, q[TILE] ALIGNED, mean[TILE] ALIGNED, ma[TILE] ALIGNED, mb[TILE] ALIGNED;
	memset(s, 0, (size_t)w * 4), memset(q, 0, (size_t)w * 4);
	FN(bn_order)(mean, p->mean + c0, w);
	if (mask == MASK_X) FN(bn_order)(ma, p->ma + c0, w), FN(bn_order)(mb, p->mb + c0, w);
#define BODY(u, R, P, n, j)                                                                                                               \
	{                                                                                                                                     \
		V ss[2], qq[2], mm[2], aa[2] = {{0}, {0}}, bb[2] = {{0}, {0}};                                                                    \
		FN(bn_ldf)(s + (j), ss, P, n), FN(bn_ldf)(q + (j), qq, P, n), FN(bn_ldf)(mean + (j), mm, P, n);                                   \
		if (mask == MASK_X) FN(bn_ldf)(ma + (j), aa, P, n), FN(bn_ldf)(mb + (j), bb, P, n);                                               \
		AHEAD(R, P, (const EL *)p->x + r * ld, ld, j);                                                                                    \
		AHEAD(R, P, (const EL *)p->dy + r * ld, ld, j);                                                                                   \
		if (sum) AHEAD(R, P, (const EL *)p->dy2 + r * ld, ld, j);                                                                         \
		if (mask == MASK_Y) AHEAD(R, P, (const EL *)p->y + r * ld, ld, j);                                                                \
		FN(bn_dots_body)(p, (r + (u)) * ld + c0 + (j), ld, mm, aa, bb, ss, qq, mask, sum, add, R, P, n);                                  \
		FN(bn_stf)(s + (j), ss, P, n), FN(bn_stf)(q + (j), qq, P, n);                                                                     \
	}
	ROWS(rows, w, BODY);
#undef BODY
	FN(bn_unorder)(sums, s, w), FN(bn_unorder)(dots, q, w);
}

INLINE void FN(bn_dots_run)(const bn_place *p, int64_t m, int64_t w, float *sums, float *dots, int mask, int sum, int add) {
	V mm[SETS], s[4] = {0}, q[4] = {0}, aa[SETS] = {0}, bb[SETS] = {0};
	FN(bn_sets)(mm, p->mean, w);
	if (mask == MASK_X) FN(bn_sets)(aa, p->ma, w), FN(bn_sets)(bb, p->mb, w);
#define BODY(R, n, i)                                                                                                                                  \
	UNROLL for (int u = 0; u < R; u++) {                                                                                                               \
		int k = SET(R, i, u), l = SLOT(R, i, u);                                                                                                       \
		FN(bn_dots_body)(p, (i) + u * VL, 0, mm + k, aa + k, bb + k, s + l, q + l, mask, sum, add, 1, 1, n);                                                 \
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
INLINE void FN(bn_dx_body)(const bn_place *p, int64_t at, int64_t ld, const V *k, const V *b, const V *a, const V *ma, const V *mb, int mask, int sum, int R,
                           int P, int n) {
	V t[4][2];
	UNROLL for (int u = 0; u < R; u++) {
		V x[2], g[2];
		FN(bn_point)(p, at + u * ld, ma, mb, x, g, mask, sum, P, n);
		UNROLL for (int v = 0; v < P; v++) t[u][v] = g[v] * k[v] + (x[v] * b[v] + a[v]);
	}
	EL *dx = (EL *)p->dx + at;
	UNROLL for (int u = 0; u < R; u++) FN(bn_st)(dx + u * ld, t[u], P, n);
}

// If dx lies apart from dy, its lines come from memory, too, and rows come in the order of memory.
INLINE void FN(bn_dx_item)(const bn_place *p, int64_t rows, int64_t w, const float *k, const float *b, const float *a, int layout, int mask, int sum,
                           int apart) {
	if (layout != KERN_ROWS) {
		V kk[SETS], bb[SETS], aa[SETS], ma[SETS] = {0}, mb[SETS] = {0};
		FN(bn_sets)(kk, k, w), FN(bn_sets)(bb, b, w), FN(bn_sets)(aa, a, w);
		if (mask == MASK_X) FN(bn_sets)(ma, p->ma, w), FN(bn_sets)(mb, p->mb, w);
#define BODY(R, n, i)                                                                                                                         \
	UNROLL for (int u = 0; u < R; u++) {                                                                                                      \
		int l = SET(R, i, u);                                                                                                                 \
		FN(bn_dx_body)(p, (i) + u * VL, 0, kk + l, bb + l, aa + l, ma + l, mb + l, mask, sum, 1, 1, n);                                               \
	}
		SPAN(rows * w, BODY);
#undef BODY
		return;
	}
	float ko[TILE] ALIGNED, bo[TILE] ALIGNED, ao[TILE] ALIGNED, mao[TILE] ALIGNED, mbo[TILE] ALIGNED;
	for (int64_t c = 0; c < w; c += TILE) {
		int64_t tile = w - c < TILE ? w - c : TILE;
		FN(bn_order)(ko, k + c, tile), FN(bn_order)(bo, b + c, tile), FN(bn_order)(ao, a + c, tile);
		if (mask == MASK_X) FN(bn_order)(mao, p->ma + c, tile), FN(bn_order)(mbo, p->mb + c, tile);
#define BODY(u, R, P, n, j)                                                                                                                      \
	{                                                                                                                                            \
		V kk[2], bb[2], aa[2], ma[2] = {{0}, {0}}, mb[2] = {{0}, {0}};                                                                           \
		FN(bn_ldf)(ko + (j), kk, P, n), FN(bn_ldf)(bo + (j), bb, P, n), FN(bn_ldf)(ao + (j), aa, P, n);                                          \
		if (mask == MASK_X) FN(bn_ldf)(mao + (j), ma, P, n), FN(bn_ldf)(mbo + (j), mb, P, n);                                                    \
		if (!apart) {                                                                                                                            \
			AHEAD(R, P, (const EL *)p->x + c + r * w, w, j);                                                                                     \
			AHEAD(R, P, (const EL *)p->dy + c + r * w, w, j);                                                                                    \
			if (sum) AHEAD(R, P, (const EL *)p->dy2 + c + r * w, w, j);                                                                          \
			if (mask == MASK_Y) AHEAD(R, P, (const EL *)p->y + c + r * w, w, j);                                                                 \
		}                                                                                                                                        \
		FN(bn_dx_body)(p, (r + (u)) * w + c + (j), w, kk, bb, aa, ma, mb, mask, sum, R, P, n);                                                   \
	}
		if (apart) EACH(rows, tile, BODY);
		else ROWS(rows, tile, BODY);
#undef BODY
	}
}

static void FN(bn_dx)(const bn_pass *p, int64_t g, int64_t i) {
	int64_t rows, w = p->t.width;
	bn_place at = bn_place_of(p, g, i, sizeof(EL), &rows);
	const float *k = p->par[0] + g * w, *b = p->par[1] + g * w, *a = p->par[2] + g * w;
	int flags = p->cmd->flags, layout = p->t.layout;
	if (flags & BN_ADD) at.dy = at.dres, flags = 0; // the first pass wrote g there
	int apart = at.dx != at.dy;
#define CASE(mask, sum) FN(bn_dx_item)(&at, rows, w, k, b, a, layout, mask, sum, apart)
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
