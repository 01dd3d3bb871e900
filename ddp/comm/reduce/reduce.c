//go:build cgo && amd64

#include "reduce.h"
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { F32 = 1, BF16, F16, F64, I32, I64, U8, I8, TYPES };
static const unsigned char size_of[TYPES] = {0, 4, 2, 2, 8, 4, 8, 1, 1};

typedef void (*two_fn)(size_t n, void *a, const void *b); // a = a op b; also load and store
typedef void (*sum2_fn)(size_t n, void *a, void *b);
typedef void (*sum4_fn)(size_t n, void *a, void *b, void *c, void *d);

typedef struct {
	const char *isa;
	two_fn two[TYPES][3];
	two_fn load[TYPES], store[TYPES];
	sum2_fn sum2[TYPES];
	sum4_fn sum4[TYPES];
} table;

// The same as half.go, for the remaining elements that do not fill a vector.
static inline float from_f16(uint16_t v) {
	uint32_t sign = (uint32_t)(v & 0x8000) << 16, exp = v >> 10 & 31, frac = v & 1023, r;
	float f;
	if (exp == 31)
		r = frac ? sign | 0x7fc00000 | frac << 13 : sign | 0x7f800000;
	else if (exp == 0) {
		f = (float)frac * (1.0f / (1 << 24));
		memcpy(&r, &f, 4);
		r |= sign;
	} else
		r = sign | (exp + 112) << 23 | frac << 13;
	memcpy(&f, &r, 4);
	return f;
}

static inline uint16_t to_f16(float f) {
	uint32_t b;
	memcpy(&b, &f, 4);
	uint16_t sign = b >> 16 & 0x8000;
	b &= 0x7fffffff;
	if (b > 0x7f800000)
		return sign | 0x7e00 | (b >> 13 & 0x3ff);
	if (b >= 0x477ff000)
		return sign | 0x7c00;
	if (b < 0x38800000) {
		memcpy(&f, &b, 4);
		f += 0.5f;
		memcpy(&b, &f, 4);
		return sign | (uint16_t)(b - 0x3f000000);
	}
	return sign | (uint16_t)((b - (112u << 23) + 0xfff + (b >> 13 & 1)) >> 13);
}

#define SUFFIX _base
#define ISA "sse2"
#include "kernels_isa.h"

#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#define F16_VECTOR
#define SUFFIX _avx2
#define ISA "avx2"
#include "kernels_isa.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define SUFFIX _avx512
#define ISA "avx512"
#include "kernels_isa.h"
#pragma GCC pop_options

static const table *use;

__attribute__((constructor)) static void choose(void) {
	__builtin_cpu_init();
	use = &table_base;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
		use = &table_avx2;
	if (use == &table_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		use = &table_avx512;
}

const char *gt_reduce_isa(void) { return use->isa; }

// General case: a block at a time goes through an accumulator that stays in the first-level cache. 16-bit floats widen to float32 there.
static void blocks(int op, int t, size_t n, void *dst, void **mirror, int nmirror, void **src, int nsrc) {
	enum { BLOCK = 8192 };
	char acc[BLOCK] __attribute__((aligned(64))), one[BLOCK] __attribute__((aligned(64)));
	int wide = use->load[t] != 0, work = wide ? F32 : t;
	size_t size = size_of[t], per = BLOCK / size_of[work];
	for (size_t i = 0; i < n; i += per) {
		size_t m = n - i < per ? n - i : per, off = i * size;
		if (wide)
			use->load[t](m, acc, (char *)src[0] + off);
		else
			memcpy(acc, (char *)src[0] + off, m * size);
		for (int k = 1; k < nsrc; k++) {
			const void *x = (char *)src[k] + off;
			if (wide) {
				use->load[t](m, one, x);
				x = one;
			}
			use->two[work][op](m, acc, x);
		}
		const void *out = acc;
		if (wide) {
			use->store[t](m, one, (const void *)acc);
			out = one;
		}
		if (dst)
			memcpy((char *)dst + off, out, m * size);
		for (int k = 0; k < nmirror; k++)
			memcpy((char *)mirror[k] + off, out, m * size);
	}
}

// in_place reports whether the destinations are exactly the n sources, in order.
static int in_place(void *dst, void **mirror, int nmirror, void **src, int nsrc) {
	int first = dst != 0;
	if (nmirror + first != nsrc)
		return 0;
	if (first && dst != src[0])
		return 0;
	for (int k = 0; k < nmirror; k++)
		if (mirror[k] != src[k + first])
			return 0;
	return 1;
}

void gt_reduce(int op, int t, size_t n, void *dst, const uintptr_t *mirrors, int nmirror, const uintptr_t *sources, int nsrc) {
	void **mirror = (void **)mirrors, **src = (void **)sources;
	if (op == 0 && use->sum2[t] && (nsrc == 2 || nsrc == 4) && in_place(dst, mirror, nmirror, src, nsrc)) {
		if (nsrc == 2)
			use->sum2[t](n, src[0], src[1]);
		else
			use->sum4[t](n, src[0], src[1], src[2], src[3]);
		return;
	}
	blocks(op, t, n, dst, mirror, nmirror, src, nsrc);
}

void gt_reduce2(int op, int t, size_t n, void *dst, const void *src) {
	void *s[2] = {dst, (void *)src};
	if (use->load[t])
		blocks(op, t, n, dst, 0, 0, s, 2);
	else
		use->two[t][op](n, dst, src);
}
