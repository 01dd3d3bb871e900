// Compiles the kernels once for AVX2 and once for any processor.
#include "baseline.h"
#include <string.h>

static const uint8_t bl_zigzag[80] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
};

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 3")
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HAVE_V3 1
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,movbe,popcnt")
#define AVX2 1
#define ISA(name) CAT(name, _v3)
#include "idct.per_isa.h"
#include "scan.per_isa.h"
#include "color.per_isa.h"
#undef AVX2
#undef ISA
#pragma GCC pop_options
#endif

#define ISA(name) CAT(name, _base)
#include "idct.per_isa.h"
#include "scan.per_isa.h"
#include "color.per_isa.h"

int bl_isa(void) {
#ifdef HAVE_V3
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma")) return BL_V3;
#endif
	return BL_BASE;
}

int bl_mcus(const bl_job *j, const bl_huffman *dc, const bl_huffman *ac, const uint8_t *src, size_t n, int64_t first, int64_t last, int whole,
            uint8_t *planes) {
#ifdef HAVE_V3
	if (j->isa == BL_V3) return mcus_v3(j, dc, ac, src, n, first, last, whole, planes);
#endif
	return mcus_base(j, dc, ac, src, n, first, last, whole, planes);
}

void bl_color(const bl_job *j, uint8_t *planes, uint8_t *rgb) {
#ifdef HAVE_V3
	if (j->isa == BL_V3) {
		color_v3(j, planes, rgb);
		return;
	}
#endif
	color_base(j, planes, rgb);
}

size_t bl_unstuff(uint8_t *dst, const uint8_t *src, size_t n, size_t *used, int *marker) {
	uint8_t *out = dst;
	const uint8_t *p = src, *end = src + n;
	*marker = 0;
	while (p < end) {
		const uint8_t *ff = memchr(p, 0xff, (size_t)(end - p));
		size_t part = (size_t)((ff ? ff : end) - p);
		memcpy(out, p, part);
		out += part;
		p += part;
		if (!ff) break;
		while (p + 1 < end && p[1] == 0xff) p++; // fill bytes
		if (p + 1 >= end) { // half a marker
			p = end;
			*marker = 0xff;
			break;
		}
		if (p[1] != 0) {
			*marker = p[1];
			p += 2;
			break;
		}
		*out++ = 0xff;
		p += 2;
	}
	*used = (size_t)(p - src);
	return (size_t)(out - dst);
}
