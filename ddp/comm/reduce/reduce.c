//go:build cgo && amd64

#include "half.h"
#include "reduce.h"
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
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

// The best instruction set of this processor that GOTRAIN_MAX_ISA allows: 0 sse2, 1 avx2, 2 avx512.
static int best(void) {
	__builtin_cpu_init();
	int isa = 0;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma"))
		isa = 1;
	if (isa == 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512vl"))
		isa = 2;
	return isa;
}

int gt_reduce_limit(int isa) {
	static const table *const all[] = {&table_base, &table_avx2, &table_avx512};
	if (isa > best())
		isa = best();
	use = all[isa];
	gt_codec_use(isa);
	return isa;
}

__attribute__((constructor)) static void choose(void) {
	const char *max = getenv("GOTRAIN_MAX_ISA");
	gt_reduce_limit(max && !strcmp(max, "base") ? 0 : max && !strcmp(max, "avx2") ? 1 : 2);
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

// halves is blocks for sums of 16-bit floats, which stay in registers. Other destinations get copies of the first while that is in the cache.
static void halves(int t, size_t n, void *dst, void **mirror, int nmirror, void **src, int nsrc) {
	if (!dst)
		dst = *mirror++, nmirror--;
	size_t each = nmirror ? 4096 : n;
	for (size_t i = 0; i < n; i += each) {
		size_t to = n - i < each ? n : i + each;
		gt_add_halves(t == BF16, i, to, dst, src, nsrc);
		for (int k = 0; k < nmirror; k++)
			if (mirror[k] != dst)
				memcpy((uint16_t *)mirror[k] + i, (uint16_t *)dst + i, (to - i) * 2);
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
	if (op == 0 && use->load[t] && (dst || nmirror))
		halves(t, n, dst, mirror, nmirror, src, nsrc);
	else
		blocks(op, t, n, dst, mirror, nmirror, src, nsrc);
}

void gt_reduce2(int op, int t, size_t n, void *dst, const void *src) {
	void *s[2] = {dst, (void *)src};
	if (use->load[t] && op == 0)
		gt_add_halves(t == BF16, 0, n, dst, s, 2);
	else if (use->load[t])
		blocks(op, t, n, dst, 0, 0, s, 2);
	else
		use->two[t][op](n, dst, src);
}
