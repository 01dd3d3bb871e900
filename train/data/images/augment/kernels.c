// Products are rounded before they are added, as in Go: GCC does so with -std=c11, clang with the pragma.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("no-trapping-math") // otherwise loops with comparisons have no vector instructions
#endif
#include "kernels.h"
#include <string.h>

#define V(name) name##_base
#define TARGET
#include "bodies.h"
#undef V
#undef TARGET

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define V(name) name##_avx2
#define TARGET __attribute__((target("avx2")))
#include "bodies.h"
#undef V
#undef TARGET

#define V(name) name##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#include "bodies.h"

int aug_level(void) {
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512vbmi"))
		return 2;
	return __builtin_cpu_supports("avx2") ? 1 : 0;
}

// look looks 64 bytes up in a table of 256.
#define LOOK(x) \
	_mm512_mask_blend_epi8(_mm512_movepi8_mask(x), _mm512_permutex2var_epi8(t0, x, t1), _mm512_permutex2var_epi8(t2, x, t3))

TARGET static void look_up(uint8_t *pix, int64_t n, const uint8_t *table) {
	__m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64), t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
	for (; n >= 64; n -= 64, pix += 64) {
		__m512i x = _mm512_loadu_si512(pix);
		_mm512_storeu_si512(pix, LOOK(x));
	}
	if (n > 0) {
		__mmask64 m = ((__mmask64)1 << n) - 1;
		__m512i x = _mm512_maskz_loadu_epi8(m, pix);
		_mm512_mask_storeu_epi8(pix, m, LOOK(x));
	}
}

void aug_map(uint8_t *pix, int64_t n, const uint8_t *table) { look_up(pix, n, table); }

TARGET void aug_map3(uint8_t *pix, int64_t n, const uint8_t *tables) {
	uint8_t c[3][CHUNK];
	for (int64_t at = 0; at < n; at += CHUNK, pix += 3 * CHUNK) {
		int k = n - at < CHUNK ? (int)(n - at) : CHUNK;
		V(split)(pix, k, c[0], c[1], c[2]);
		for (int i = 0; i < 3; i++) look_up(c[i], k, tables + 256 * i);
		V(join)(pix, k, c[0], c[1], c[2]);
	}
}

#define PICK(name, ...) \
	switch (level) { \
	case 2: return name##_avx512(__VA_ARGS__); \
	case 1: return name##_avx2(__VA_ARGS__); \
	default: return name##_base(__VA_ARGS__); \
	}
#else
int aug_level(void) { return 0; }
void aug_map(uint8_t *pix, int64_t n, const uint8_t *table) { (void)pix, (void)n, (void)table; }
void aug_map3(uint8_t *pix, int64_t n, const uint8_t *tables) { (void)pix, (void)n, (void)tables; }
#define PICK(name, ...) \
	(void)level; \
	return name##_base(__VA_ARGS__)
#endif

void aug_warp(uint8_t *dst, const uint8_t *src, int w, int h, int c, const double *m, const uint8_t *fill, int level) {
	PICK(warp, dst, src, w, h, c, m, fill);
}
void aug_colour(uint8_t *pix, int64_t n, float factor, int level) { PICK(colour, pix, n, factor); }
void aug_sharpness(uint8_t *dst, const uint8_t *src, int w, int h, int c, float factor, int level) { PICK(sharpness, dst, src, w, h, c, factor); }
void aug_hue(uint8_t *pix, int64_t n, int shift, int level) { PICK(hue, pix, n, shift); }
int64_t aug_grey(const uint8_t *pix, int64_t n, int level) { PICK(greys, pix, n); }
