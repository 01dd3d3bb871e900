// Elementwise ops for one instruction set.
#define TYPED "elementwise.per_type.h"
#include "types.h"

static int ISA(relu)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(relu_range), c);
	return 0;
}

static int ISA(relu_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(relu_bwd_range), c);
	return 0;
}

static int ISA(add)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(add_range), c);
	return 0;
}

// convert: n[1] and n[2] are the types of x and y.
static void ISA(convert_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t i = lo * 1024, m = (hi * 1024 < c->n[0] ? hi * 1024 : c->n[0]) - i;
	if (c->n[1] == KERN_F32) {
		const float *x = (const float *)c->p[0] + i;
		uint16_t *y = (uint16_t *)c->p[1] + i;
		for (; m >= VL; m -= VL, x += VL, y += VL) ISA(st_bf16)(y, ISA(ld_f32)(x));
		for (; m > 0; m--) ISA(st1_bf16)(y++, *x++);
	} else {
		const uint16_t *x = (const uint16_t *)c->p[0] + i;
		float *y = (float *)c->p[1] + i;
		for (; m >= VL; m -= VL, x += VL, y += VL) ISA(st_f32)(y, ISA(ld_bf16)(x));
		for (; m > 0; m--) *y++ = ISA(ld1_bf16)(x++);
	}
}

static int ISA(convert)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, ISA(convert_range), c);
	return 0;
}

// The general map works on blocks of at most 256 float32 elements, in the cache; other types are converted on input and output.
#define BLOCK 256

INLINE V ISA(logv)(V x) {
	for (int i = 0; i < VL; i++) x[i] = logf(x[i]);
	return x;
}

// y and a, b have room for whole vectors.
NOINLINE void ISA(apply)(const kern_cmd *c, float *y, const float *a, const float *b, int64_t m) {
	const V zero = {0}, one = ISA(splat)(1);
	float alpha = (float)c->f[0], beta = (float)c->f[1];
#define EACH(code, expr)                                  \
	case code:                                            \
		for (int64_t i = 0; i < m; i += VL) {             \
			V A = ISA(ld_f32)(a + i), B = ISA(ld_f32)(b + i); \
			(void)A, (void)B;                             \
			ISA(st_f32)(y + i, expr);                     \
		}                                                 \
		break;
	switch (c->n[0]) {
		EACH(FN_NEG, -A)
		EACH(FN_EXP, ISA(vexp)(A))
		EACH(FN_LOG, ISA(logv)(A))
		EACH(FN_SQRT, ISA(vsqrt)(A))
		EACH(FN_RSQRT, 1 / ISA(vsqrt)(A))
		EACH(FN_SQUARE, A *A)
		EACH(FN_ABS, ISA(vabs)(A))
		EACH(FN_RECIP, 1 / A)
		EACH(FN_TANH, ISA(vtanh)(A))
		EACH(FN_SIGMOID, 1 / (1 + ISA(vexp)(-A)))
		EACH(FN_SILU, A / (1 + ISA(vexp)(-A)))
		EACH(FN_SIGN, ISA(select)(A > zero, one, ISA(select)(A < zero, -one, A)))
		EACH(FN_AFFINE, A *alpha + beta)
		EACH(FN_ADD, A + B)
		EACH(FN_SUB, A - B)
		EACH(FN_MUL, A *B)
		EACH(FN_DIV, A / B)
		EACH(FN_MAX, ISA(select)(A != A, A, ISA(select)(A > B, A, B)))
		EACH(FN_MIN, ISA(select)(A != A, A, ISA(select)(A < B, A, B)))
		EACH(FN_GT, ISA(select)(A > B, one, zero))
		EACH(FN_GE, ISA(select)(A >= B, one, zero))
		EACH(FN_EQ, ISA(select)(A == B, one, zero))
	}
#undef EACH
	if (c->n[1])
		for (int64_t i = 0; i < m; i += VL) ISA(st_f32)(y + i, ISA(vrelu)(ISA(ld_f32)(y + i)));
}

// m elements of p, or m times its first where stride is 0, in float32.
static void ISA(fetch)(float *t, const void *p, int64_t type, int64_t at, int64_t stride, int64_t m) {
	if (stride == 0) {
		float v = type == KERN_BF16 ? ISA(ld1_bf16)((const uint16_t *)p + at) : ((const float *)p)[at];
		for (int64_t i = 0; i < m; i++) t[i] = v;
		return;
	}
	if (type == KERN_F32) {
		memcpy(t, (const float *)p + at, (size_t)m * 4);
		return;
	}
	const uint16_t *q = (const uint16_t *)p + at;
	int64_t i = 0;
	for (; i + VL <= m; i += VL) ISA(st_f32)(t + i, ISA(ld_bf16)(q + i));
	for (; i < m; i++) t[i] = ISA(ld1_bf16)(q + i);
}

// Blocks lo…hi-1; there are ceil(last dim / BLOCK) in each run along the last dim.
static void ISA(map_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t nd = c->n[2], last = c->v[nd - 1], per = (last + BLOCK - 1) / BLOCK;
	const int64_t *dims = c->v, *sa = dims + nd, *sb = sa + nd;
	float a[BLOCK] __attribute__((aligned(64))), b[BLOCK] __attribute__((aligned(64))) = {0}, y[BLOCK] __attribute__((aligned(64)));
	for (int64_t k = lo; k < hi; k++) {
		int64_t run = k / per, i = k % per * BLOCK, m = last - i < BLOCK ? last - i : BLOCK;
		int64_t oa = i * sa[nd - 1], ob = i * sb[nd - 1], at = run * last + i;
		for (int64_t d = nd - 2; d >= 0; d--) {
			oa += run % dims[d] * sa[d], ob += run % dims[d] * sb[d];
			run /= dims[d];
		}
		ISA(fetch)(a, c->p[0], c->n[3], oa, sa[nd - 1], m);
		if (c->p[1]) ISA(fetch)(b, c->p[1], c->n[4], ob, sb[nd - 1], m);
		ISA(apply)(c, y, a, b, m);
		if (c->n[5] == KERN_F32)
			memcpy((float *)c->p[2] + at, y, (size_t)m * 4);
		else {
			uint16_t *q = (uint16_t *)c->p[2] + at;
			int64_t j = 0;
			for (; j + VL <= m; j += VL) ISA(st_bf16)(q + j, ISA(ld_f32)(y + j));
			for (; j < m; j++) ISA(st1_bf16)(q + j, y[j]);
		}
	}
}

static int ISA(map)(kern_cmd *c, int nthreads) {
	int64_t nd = c->n[2], blocks = (c->v[nd - 1] + BLOCK - 1) / BLOCK;
	for (int64_t d = 0; d < nd - 1; d++) blocks *= c->v[d];
	kern_for(nthreads, blocks, BLOCK, ISA(map_range), c);
	return 0;
}
#undef BLOCK
