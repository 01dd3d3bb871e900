// Products of a few rows with a matrix for one instruction set and element type of the matrix.
#include "type.h"

// Adds the products of elements k0…k1-1 of R rows of b, which are apart elements from one another, and M rows of a to sums[q*FEW_GROUP + r*step]. M, R and
// AHEAD are constants where this is inlined, and the sums stay in registers meanwhile. With AHEAD, a cache line that is needed soon is prefetched while one
// is used.
INLINE void FN(few_block)(V *sums, int64_t step, const AT *a, const EL *b, int64_t k, int64_t apart, int64_t k0, int64_t k1, const int M, const int R,
						  const int AHEAD) {
	V s[FEW_SUMS];
	UNROLL_ALL for (int j = 0; j < M * R; j++) s[j] = sums[j / R * FEW_GROUP + j % R * step];
#define PRODUCTS(N, i)                                                                        \
	{                                                                                         \
		int n = N;                                                                            \
		VEC v[4];                                                                             \
		UNROLL for (int r = 0; r < R; r++) v[r] = LDB(b + r * apart + (i));                   \
		UNROLL for (int q = 0; q < M; q++) {                                                  \
			VEC t = LDA(a + q * k + (i));                                                     \
			UNROLL for (int r = 0; r < R; r++) DOT(s[q * R + r], t, v[r]);                    \
		}                                                                                     \
	}
	enum { LINE = 64 / sizeof(EL) };
	int64_t i = k0, ahead = few_ahead(R * k * (int64_t)sizeof(EL));
	for (; i + LINE <= k1; i += LINE) {
		if (AHEAD) UNROLL for (int r = 0; r < R; r++) __builtin_prefetch((const char *)(b + r * apart + i) + ahead);
		UNROLL for (int l = 0; l < LINE; l += STEP) PRODUCTS(STEP, i + l)
	}
	for (; i + STEP <= k1; i += STEP) PRODUCTS(STEP, i)
	if (i < k1) PRODUCTS((int)(k1 - i), i)
#undef PRODUCTS
	UNROLL_ALL for (int j = 0; j < M * R; j++) sums[j / R * FEW_GROUP + j % R * step] = s[j];
}

// Columns col…col+m-1 of row q of y, m ≤ FEW_GROUP, are the sums in t.
static void FN(few_store)(const kern_cmd *c, const float *t, int64_t q, int64_t col, int m) {
	float bias[FEW_GROUP] = {0};
	if (c->p[2]) memcpy(bias, (const float *)c->p[2] + col, (size_t)m * 4);
	for (int r = 0; r < m; r += VL) {
		int n = m - r < VL ? m - r : VL;
		int64_t at = q * c->n[2] + col + r;
		V v = ISA(ld_f32)(t + r) + ISA(ld_f32)(bias + r);
		if (!(c->flags & FEW_OUT_F32))
			ST((EL *)c->p[3] + at, v);
		else if (n == VL)
			ISA(st_f32)((float *)c->p[3] + at, v);
		else
			ISA(stn_f32)((float *)c->p[3] + at, v, n);
	}
}

// Columns col…col+m-1 of y, m ≤ FEW_GROUP, from their sums.
static void FN(few_put)(const kern_cmd *c, const V *sums, int64_t col, int m) {
	for (int64_t q = 0; q < c->n[0]; q++) {
		float t[FEW_GROUP];
		for (int r = 0; r < m; r += 4) ISA(sum4)(t + r, sums + q * FEW_GROUP + r);
		FN(few_store)(c, t, q, col, m);
	}
}

// The sums of the products of one row of a with R rows of b, which are apart elements from one another. The sums stay in registers from the first element to
// the last, so that nothing but the matrix is loaded. The order of additions is that of few_block.
INLINE void FN(few_dots)(float *sums, const AT *a, const EL *b, int64_t k, int64_t apart, int64_t ahead, const int R, const int AHEAD) {
	enum { LINE = 64 / sizeof(EL) };
	V s[FEW_BESIDE(1)];
	UNROLL for (int u = 0; u < FEW_BESIDE(1); u++) s[u] = (V){0};
#define PRODUCTS(N, i)                                                          \
	{                                                                           \
		int n = N;                                                              \
		VEC x = LDA(a + (i));                                                   \
		UNROLL for (int u = 0; u < R; u++) DOT(s[u], x, LDB(b + u * apart + (i))); \
	}
	int64_t i = 0;
	for (; i + LINE <= k; i += LINE) {
		if (AHEAD) UNROLL for (int u = 0; u < R; u++) __builtin_prefetch((const char *)(b + u * apart + i) + ahead);
		UNROLL for (int l = 0; l < LINE; l += STEP) PRODUCTS(STEP, i + l)
	}
	for (; i + STEP <= k; i += STEP) PRODUCTS(STEP, i)
	if (i < k) PRODUCTS((int)(k - i), i)
#undef PRODUCTS
	ISA(sum4)(sums, s);
}

// The products of one row of a with rows j…j+m-1 of b, m ≤ FEW_GROUP, and as many of each further stream, where a fits in the first-level cache.
static void FN(few_single)(const kern_cmd *c, int64_t j, int m, int64_t each) {
	enum { R = FEW_BESIDE(1) };
	const AT *a = sizeof(AT) == sizeof(EL) ? c->p[0] : c->ws;
	int64_t k = c->n[1], ahead = few_ahead(R * k * (int64_t)sizeof(EL));
	const EL *b = (const EL *)c->p[1] + j * k;
	float t[R][FEW_GROUP], some[4];
	if (each) {
		for (int r = 0; r < m; r++) {
			FN(few_dots)(some, a, b + r * k, k, each * k, 0, R, 0);
			UNROLL for (int u = 0; u < R; u++) t[u][r] = some[u];
		}
		for (int u = 0; u < R; u++) FN(few_store)(c, t[u], 0, j + u * each, m);
		return;
	}
	int r = 0;
	for (; r + R <= m; r += R) FN(few_dots)(t[0] + r, a, b + r * k, k, k, ahead, R, 1);
	for (; r < m; r++) {
		FN(few_dots)(some, a, b + r * k, k, k, ahead, 1, 1);
		t[0][r] = some[0];
	}
	FN(few_store)(c, t[0], 0, j, m);
}

// Rows j…j+m-1 of b, m ≤ FEW_GROUP, and as many of each further stream; a stream begins each rows after the one before. With 0 there is but one, whose
// rows are taken several at a time. a is used in pieces that fit in the first-level cache.
static void FN(few_group)(const kern_cmd *c, int64_t j, int m, int64_t each) {
	const AT *a = sizeof(AT) == sizeof(EL) ? c->p[0] : c->ws;
	int64_t M = c->n[0], k = c->n[1], piece = FEW_PIECE / (M * (int64_t)sizeof(AT)) & ~63, step = M * FEW_GROUP;
	int streams = each ? FEW_BESIDE(M) : 1;
	V sums[FEW_SUMS * FEW_GROUP];
	for (int64_t i = 0; i < step * streams; i++) sums[i] = (V){0};
	for (int64_t k0 = 0; k0 < k; k0 += piece) {
		int64_t k1 = k0 + piece < k ? k0 + piece : k;
		const EL *b = (const EL *)c->p[1] + j * k;
		int r = 0;
#define CASE(M)                                                                                                                         \
	case M:                                                                                                                             \
		if (each)                                                                                                                       \
			for (; r < m; r++) FN(few_block)(sums + r, step, a, b + r * k, k, each * k, k0, k1, M, FEW_BESIDE(M), 0);                   \
		else                                                                                                                            \
			for (; r + FEW_BESIDE(M) <= m; r += FEW_BESIDE(M)) FN(few_block)(sums + r, 1, a, b + r * k, k, k, k0, k1, M, FEW_BESIDE(M), 1); \
		break;
		switch (M) {
			CASE(1)
			CASE(2)
			CASE(3)
			CASE(4)
			CASE(5)
			CASE(6)
			CASE(7)
			CASE(8)
		}
#undef CASE
		for (; r < m; r++)
			for (int64_t q = 0; q < M; q++) FN(few_block)(sums + q * FEW_GROUP + r, 1, a + q * k, b + r * k, k, k, k0, k1, 1, 1, 1);
	}
	for (int s = 0; s < streams; s++) FN(few_put)(c, sums + s * step, j + s * each, m);
}

// Groups lo…hi-1 of FEW_GROUP rows of b.
static void FN(few_groups)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t j = lo * FEW_GROUP, end = hi * FEW_GROUP < c->n[2] ? hi * FEW_GROUP : c->n[2];
	int single = c->n[0] == 1 && c->n[1] * (int64_t)sizeof(AT) <= FEW_PIECE;
	if (few_apart()) {
		int64_t each = (end - j) / FEW_BESIDE(c->n[0]), first = j + each;
		for (; j < first; j += FEW_GROUP) {
			int m = (int)(first - j < FEW_GROUP ? first - j : FEW_GROUP);
			single ? FN(few_single)(c, j, m, each) : FN(few_group)(c, j, m, each);
		}
		j = first + (FEW_BESIDE(c->n[0]) - 1) * each;
	}
	for (; j < end; j += FEW_GROUP) {
		int m = (int)(end - j < FEW_GROUP ? end - j : FEW_GROUP);
		single ? FN(few_single)(c, j, m, 0) : FN(few_group)(c, j, m, 0);
	}
}
