// Products of a few rows with a matrix for one instruction set and element type of the matrix.
#include "type.h"

// Adds the products of elements k0…k1-1 of R rows of b and M rows of a to sums[q*FEW_GROUP + r]. M and R are constants where this is inlined, and the sums
// stay in registers meanwhile. While a cache line is used, one that is needed soon is prefetched: hardware prefetching stops at page ends.
INLINE void FN(few_block)(V *sums, const AT *a, const EL *b, int64_t k, int64_t k0, int64_t k1, const int M, const int R) {
	V s[FEW_SUMS];
	UNROLL_ALL for (int j = 0; j < M * R; j++) s[j] = sums[j / R * FEW_GROUP + j % R];
#define PRODUCTS(N, i)                                                                        \
	{                                                                                         \
		int n = N;                                                                            \
		VEC v[4];                                                                             \
		UNROLL for (int r = 0; r < R; r++) v[r] = LDB(b + r * k + (i));                       \
		UNROLL for (int q = 0; q < M; q++) {                                                  \
			VEC t = LDA(a + q * k + (i));                                                     \
			UNROLL for (int r = 0; r < R; r++) DOT(s[q * R + r], t, v[r]);                    \
		}                                                                                     \
	}
	enum { LINE = 64 / sizeof(EL) };
	int64_t i = k0, ahead = R * k * (int64_t)sizeof(EL); // the next rows, or, if rows are long, further along the same rows
	if (ahead > 8192) ahead = 2048;
	for (; i + LINE <= k1; i += LINE) {
		UNROLL for (int r = 0; r < R; r++) __builtin_prefetch((const char *)(b + r * k + i) + ahead);
		UNROLL for (int l = 0; l < LINE; l += STEP) PRODUCTS(STEP, i + l)
	}
	for (; i + STEP <= k1; i += STEP) PRODUCTS(STEP, i)
	if (i < k1) PRODUCTS((int)(k1 - i), i)
#undef PRODUCTS
	UNROLL_ALL for (int j = 0; j < M * R; j++) sums[j / R * FEW_GROUP + j % R] = s[j];
}

// Columns col…col+m-1 of y, m ≤ FEW_GROUP, from their sums.
static void FN(few_put)(const kern_cmd *c, const V *sums, int64_t col, int m) {
	for (int64_t q = 0; q < c->n[0]; q++) {
		float t[FEW_GROUP], bias[FEW_GROUP] = {0};
		if (c->p[2]) memcpy(bias, (const float *)c->p[2] + col, (size_t)m * 4);
		for (int r = 0; r < FEW_GROUP; r += 4) ISA(sum4)(t + r, sums + q * FEW_GROUP + r);
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
}

// Groups lo…hi-1 of FEW_GROUP rows of b. a is used in pieces that fit in the first-level cache.
static void FN(few_groups)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	const AT *a = sizeof(AT) == sizeof(EL) ? c->p[0] : c->ws;
	int64_t M = c->n[0], k = c->n[1], piece = FEW_PIECE / (M * (int64_t)sizeof(AT)) & ~63;
	V sums[8 * FEW_GROUP];
	int alone = M == 1 && few_alone();
	for (int64_t j = lo * FEW_GROUP; j < hi * FEW_GROUP && j < c->n[2]; j += FEW_GROUP) {
		int m = c->n[2] - j < FEW_GROUP ? (int)(c->n[2] - j) : FEW_GROUP;
		for (int64_t q = 0; q < M * FEW_GROUP; q++) sums[q] = (V){0};
		for (int64_t k0 = 0; k0 < k; k0 += piece) {
			int64_t k1 = k0 + piece < k ? k0 + piece : k;
			const EL *b = (const EL *)c->p[1] + j * k;
			int r = 0;
#define CASE(M, R)                                                                                  \
	case M:                                                                                         \
		for (; r + R <= m; r += R) FN(few_block)(sums + r, a, b + r * k, k, k0, k1, M, R);          \
		break;
			switch (alone ? 0 : M) {
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
			for (; r < m; r++)
				for (int64_t q = 0; q < M; q++) FN(few_block)(sums + q * FEW_GROUP + r, a + q * k, b + r * k, k, k0, k1, 1, 1);
		}
		FN(few_put)(c, sums, j, m);
	}
}
