// Products of a few rows with a matrix for one instruction set: y = a·bᵀ. n: M, K, N. Each row of b is read once, for all rows of a.
//
// STEP elements of a (of type AT) and b are multiplied at once: VEC is what holds them, LDA and LDB load n of them, DOT adds their products to a V.

// The sums of four vectors.
INLINE void ISA(sum4)(float *t, const V *s) {
#if VL == 16
	__m512 a = (__m512)s[0], b = (__m512)s[1], c = (__m512)s[2], d = (__m512)s[3];
	__m512 x = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)), y = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
	__m512d u = (__m512d)x, v = (__m512d)y;
	x = _mm512_add_ps((__m512)_mm512_unpacklo_pd(u, v), (__m512)_mm512_unpackhi_pd(u, v)); // a, b, c, d, four times
	__m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
	_mm_storeu_ps(t, _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
#else
	for (int i = 0; i < 4; i++) t[i] = ISA(vsum)(s[i]);
#endif
}

#define E f32
#define EL float
#define AT float
#define STEP VL
#define VEC V
#define LDA LD
#define LDB LD
#define DOT(s, a, b) s += (a) * (b)
#include "fewrows.per_type.h"
#undef E
#undef EL
#undef AT
#undef STEP
#undef VEC
#undef LDA
#undef LDB
#undef DOT

#define E bf16
#define EL uint16_t
#if VL == 16 // two products in one instruction
#define AT uint16_t
#define STEP 32
#define VEC __m512i
#define LDA(p) (n == STEP ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16((__mmask32)((1u << n) - 1), p))
#define LDB LDA
#define DOT(s, a, b) s = (V)_mm512_dpbf16_ps((__m512)(s), (__m512bh)(a), (__m512bh)(b))
#else // a was converted to float32 before
#define AT float
#define STEP VL
#define VEC V
#define LDA(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))
#define LDB LD
#define DOT(s, a, b) s += (a) * (b)
#endif
#include "fewrows.per_type.h"
#undef E
#undef EL
#undef STEP
#undef VEC
#undef LDA
#undef LDB
#undef DOT

// Groups lo…hi-1 of all products that run as one, counted through.
static void ISA(few_all)(void *ctx, int64_t lo, int64_t hi) {
	for (kern_cmd *c = ctx; c && hi > 0; c = c->next) {
		int64_t n = few_count(c), end = hi < n ? hi : n;
		if (lo < end) PICK(few_groups)(c, lo, end);
		lo = lo > n ? lo - n : 0, hi -= n;
	}
}

// fewrows: a, b, bias or null, y.
static int ISA(fewrows)(kern_cmd *c, int nthreads) {
	int64_t groups = 0;
	for (kern_cmd *e = c; e; e = e->next) {
		groups += few_count(e);
		if (e->dt != KERN_BF16 || sizeof(AT) != 4) continue;
		const uint16_t *a = e->p[0];
		float *wide = e->ws;
		for (int64_t i = 0; i < e->n[0] * e->n[1]; i++) wide[i] = ISA(ld1_bf16)(a + i);
	}
	kern_for(nthreads, groups, FEW_GROUP * c->n[1], ISA(few_all), c);
	return 0;
}
#undef AT
