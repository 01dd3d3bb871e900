//go:build cgo && amd64

#include "half.h"
#include "reduce.h"
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

typedef struct {
	int (*encode)(size_t, size_t, int8_t *, float *, const float *, const int16_t *, const float *, int16_t *, float *, float);
	int (*decode)(size_t, size_t, float *, const int8_t *, const float *);
	void (*sum)(size_t, size_t, float *, const int8_t *, const float *, size_t, int, int);
	void (*narrow)(int, size_t, uint16_t *, const float *, float);
	int (*widen)(int, size_t, float *, const uint16_t *, float);
	void (*add)(int, size_t, size_t, uint16_t *, void *const *, int);
} codec;

static inline uint32_t bits(float f) {
	uint32_t b;
	memcpy(&b, &f, 4);
	return b;
}

static inline float float_of(uint32_t b) {
	float f;
	memcpy(&f, &b, 4);
	return f;
}

static inline float from_bf16(uint16_t v) { return float_of((uint32_t)v << 16); }

static inline uint16_t to_bf16(float f) {
	uint32_t b = bits(f);
	return (b & 0x7fffffff) > 0x7f800000 ? b >> 16 | 0x40 : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}

// step is how a block is rounded: steps of quantise.go.
typedef struct {
	float size, inv;       // of a step, and its inverse; inv 0: all values are 0
	float residual, fine; // unit of the residual, and the inverse of it in the unit of x
} step;

// back is 1 / unit.
static inline step steps(uint32_t most, int feedback, float back) {
	step s = {0};
	if (most >= 0x7f800000) {
		s.size = float_of(0x7fc00000);
		return s;
	}
	float m = float_of(most);
	if (m < 0x1p-100f)
		return s;
	s.size = m / 127.0f;
	s.inv = 127.0f / m;
	if (feedback) {
		float p = float_of((bits(s.size * back) + 0x7fffff) & 0xff800000);
		p = p < 0x1p-107f ? 0x1p-107f : p > 0x1p126f ? 0x1p126f : p;
		s.residual = p * 0x1p-15f;
		s.fine = float_of(0x7f000000 - bits(s.residual)) * back; // the inverse of a power of two is exact
	}
	return s;
}

// fused is a * b + c rounded once, as in quantise.go.
static inline float fused(float a, float b, float c) {
	double p = (double)a * b, x = c, s = p + x, t = s - p, lost = (p - (s - t)) + (x - t);
	uint64_t v;
	memcpy(&v, &s, 8);
	if (lost != 0 && !(v & 1) && s - s == 0 && lost == lost) {
		v += (lost > 0) == (s > 0) ? 1 : -1;
		memcpy(&s, &v, 8);
	}
	return (float)s;
}

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

// One value at a time: for processors without AVX2.
#define NAME(x) CAT(x, _base)
#define V float
#define I int32_t
#define LANES 1
#define ldf(p) (*(p))
#define stf(p, v) (*(p) = (v))
#define vadd(a, b) ((a) + (b))
#define vmul(a, b) ((a) * (b))
#define set1(f) (f)
#define zero() 0
#define zerof() 0
#define vfma fused
#define less(y, k, s) ((float)((double)(y) - (double)(k) * (double)(s)))
#define TILE 4
#define H uint32_t
#define zeroh() 0
#define mosth mosth_base
#define cvt(v) _mm_cvtss_si32(_mm_set_ss(v))
#define cvtf(k) ((float)(k))
#define imax imax_base
#define hmax(a, b) ((uint32_t)((a) > (b) ? (a) : (b)))
#define ld8(p) ((float)*(p))
#define ld16(p) ((float)*(p))
#define st8 st8_base
#define st16 st16_base
#define ldh(p) from_f16(*(p))
#define sth(p, v) (*(p) = to_f16(v))
#define ldb(p) from_bf16(*(p))
#define stb(p, a, b) ((p)[0] = to_bf16(a), (p)[1] = to_bf16(b))
static inline int32_t imax_base(int32_t m, float v) {
	int32_t b = bits(v) & 0x7fffffff;
	return b > m ? b : m;
}
static inline uint32_t mosth_base(uint32_t m, const uint16_t *p) {
	uint32_t a = p[0] & 0x7fff, b = p[1] & 0x7fff;
	a = a > b ? a : b;
	return a > m ? a : m;
}
static inline void st8_base(int8_t *q, const int32_t *k) {
	for (int j = 0; j < 32; j++)
		q[j] = k[j] > 127 ? 127 : k[j] < -128 ? -128 : k[j];
}
static inline void st16_base(int16_t *q, const int32_t *k) {
	for (int j = 0; j < 32; j++)
		q[j] = k[j] > 32767 ? 32767 : k[j] < -32768 ? -32768 : k[j];
}
#include "codec_isa.h"

#pragma GCC push_options
#pragma GCC target("avx2,f16c,fma")
#define NAME(x) CAT(x, _avx2)
#define V __m256
#define I __m256i
#define LANES 8
#define ldf(p) _mm256_loadu_ps(p)
#define stf(p, v) _mm256_storeu_ps(p, v)
#define vadd(a, b) _mm256_add_ps(a, b)
#define vmul(a, b) _mm256_mul_ps(a, b)
#define set1(f) _mm256_set1_ps(f)
#define zero() _mm256_setzero_si256()
#define zerof() _mm256_setzero_ps()
#define vfma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define less(y, k, s) _mm256_fnmadd_ps(k, s, y)
#define TILE 4
#define H __m256i
#define zeroh() _mm256_setzero_si256()
#define mosth(m, p) _mm256_max_epu16(m, _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(p)), _mm256_set1_epi16(0x7fff)))
#define cvt(v) _mm256_cvtps_epi32(v)
#define cvtf(k) _mm256_cvtepi32_ps(k)
#define imax(m, v) _mm256_max_epi32(m, _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff)))
#define hmax hmax_avx2
#define ld8(p) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#define ld16(p) _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define st8 st8_avx2
#define st16 st16_avx2
#define ldh(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#define sth(p, v) _mm_storeu_si128((__m128i *)(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define ldb(p) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p))), 16))
#define stb stb_avx2
static inline uint32_t hmax_avx2(__m256i a, __m256i b) {
	a = _mm256_max_epi32(a, b);
	__m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(m);
}
static inline void st8_avx2(int8_t *q, const __m256i *k) {
	__m256i p = _mm256_packs_epi16(_mm256_packs_epi32(k[0], k[1]), _mm256_packs_epi32(k[2], k[3]));
	_mm256_storeu_si256((__m256i *)q, _mm256_permutevar8x32_epi32(p, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}
static inline void st16_avx2(int16_t *q, const __m256i *k) {
	_mm256_storeu_si256((__m256i *)q, _mm256_permute4x64_epi64(_mm256_packs_epi32(k[0], k[1]), 0xd8));
	_mm256_storeu_si256((__m256i *)(q + 16), _mm256_permute4x64_epi64(_mm256_packs_epi32(k[2], k[3]), 0xd8));
}
static inline __m256i bf_avx2(__m256 v) {
	__m256i b = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
	return _mm256_srli_epi32(_mm256_add_epi32(b, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd)), 16);
}
static inline void stb_avx2(uint16_t *p, __m256 a, __m256 b) {
	if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)), 0)) { // a NaN: rounding would carry into its sign
		float each[16];
		_mm256_storeu_ps(each, a);
		_mm256_storeu_ps(each + 8, b);
		for (int i = 0; i < 16; i++)
			p[i] = to_bf16(each[i]);
		return;
	}
	_mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(_mm256_packus_epi32(bf_avx2(a), bf_avx2(b)), 0xd8));
}
#include "codec_isa.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define NAME(x) CAT(x, _avx512)
#define V __m512
#define I __m512i
#define LANES 16
#define ldf(p) _mm512_loadu_ps(p)
#define stf(p, v) _mm512_storeu_ps(p, v)
#define vadd(a, b) _mm512_add_ps(a, b)
#define vmul(a, b) _mm512_mul_ps(a, b)
#define set1(f) _mm512_set1_ps(f)
#define zero() _mm512_setzero_si512()
#define zerof() _mm512_setzero_ps()
#define vfma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define less(y, k, s) _mm512_fnmadd_ps(k, s, y)
#define TILE 4
#define H __m512i
#define zeroh() _mm512_setzero_si512()
#define mosth(m, p) _mm512_max_epu16(m, _mm512_and_si512(_mm512_loadu_si512((const void *)(p)), _mm512_set1_epi16(0x7fff)))
#define cvt(v) _mm512_cvtps_epi32(v)
#define cvtf(k) _mm512_cvtepi32_ps(k)
#define imax(m, v) _mm512_max_epi32(m, _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)))
#define hmax(a, b) ((uint32_t)_mm512_reduce_max_epi32(_mm512_max_epi32(a, b)))
#define ld8(p) _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#define ld16(p) _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(p))))
#define st8 st8_avx512
#define st16 st16_avx512
#define ldh(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define sth(p, v) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT))
#define ldb(p) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define stb stb_avx512
static inline void st8_avx512(int8_t *q, const __m512i *k) {
	_mm_storeu_si128((__m128i *)q, _mm512_cvtsepi32_epi8(k[0]));
	_mm_storeu_si128((__m128i *)(q + 16), _mm512_cvtsepi32_epi8(k[1]));
}
static inline void st16_avx512(int16_t *q, const __m512i *k) {
	_mm256_storeu_si256((__m256i *)q, _mm512_cvtsepi32_epi16(k[0]));
	_mm256_storeu_si256((__m256i *)(q + 16), _mm512_cvtsepi32_epi16(k[1]));
}
static inline __m512i bf_avx512(__m512 v) {
	__m512i b = _mm512_castps_si512(v), odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
	return _mm512_srli_epi32(_mm512_add_epi32(b, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), odd)), 16);
}
static inline void stb_avx512(uint16_t *p, __m512 a, __m512 b) {
	if (__builtin_expect(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), 0)) {
		float each[32];
		_mm512_storeu_ps(each, a);
		_mm512_storeu_ps(each + 16, b);
		for (int i = 0; i < 32; i++)
			p[i] = to_bf16(each[i]);
		return;
	}
	__m512i r = _mm512_packus_epi32(bf_avx512(a), bf_avx512(b));
	_mm512_storeu_si512((void *)p, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), r));
}
#include "codec_isa.h"
#pragma GCC pop_options

// Longer vectors are slower where two passes over large blocks, or a stream of halves, wait for memory (measured on Zen 5). The bits are the same.
static int encode_mixed(size_t n, size_t block, int8_t *q, float *scale, const float *x, const int16_t *old, const float *oldscale, int16_t *neu,
	float *newscale, float unit) {
	int shorter = block >= 1024 && n > 1 << 16;
	return (shorter ? encode_avx2 : encode_avx512)(n, block, q, scale, x, old, oldscale, neu, newscale, unit);
}

static void narrow_mixed(int bf, size_t n, uint16_t *dst, const float *src, float by) { (bf ? narrow_avx512 : narrow_avx2)(bf, n, dst, src, by); }

static void add_mixed(int bf, size_t from, size_t n, uint16_t *dst, void *const *src, int nsrc) {
	(bf ? add_avx512 : add_avx2)(bf, from, n, dst, src, nsrc);
}

static const codec codec_mixed = {encode_mixed, decode_avx512, sum_avx512, narrow_mixed, widen_avx512, add_mixed};

static const codec *use = &codec_base;

void gt_codec_use(int isa) {
	static const codec *const all[] = {&codec_base, &codec_avx2, &codec_mixed};
	use = all[isa];
}

int gt_quantise(size_t n, size_t block, int8_t *q, float *scale, const float *x, const int16_t *old, const float *oldscale, int16_t *neu,
	float *newscale, float unit) {
	return use->encode(n, block, q, scale, x, old, oldscale, neu, newscale, unit);
}

int gt_dequantise(size_t n, size_t block, float *dst, const int8_t *q, const float *scale) { return use->decode(n, block, dst, q, scale); }

void gt_sum_quantised(size_t n, size_t block, float *dst, const int8_t *q, const float *scale, size_t stride, int ranks, int own) {
	use->sum(n, block, dst, q, scale, stride, ranks, own);
}

void gt_narrow(int bf, size_t n, uint16_t *dst, const float *src, float by) { use->narrow(bf, n, dst, src, by); }

int gt_widen(int bf, size_t n, float *dst, const uint16_t *src, float by) { return use->widen(bf, n, dst, src, by); }

void gt_add_halves(int bf, size_t from, size_t n, void *dst, void *const *src, int nsrc) { use->add(bf, from, n, dst, src, nsrc); }
