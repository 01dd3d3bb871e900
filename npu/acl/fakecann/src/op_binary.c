// Arithmetic of two tensors, or of a tensor and a scalar, with broadcasting and promotion; forms in place.
#include "op_ew.h"

EW(add, 2, a + p0 * b, a + p0 * b, a + p0 * b)
EW(adds, 1, a + p1 * p0, a + p1 * p0, a + p1 * p0)
EW(sub, 2, a - p0 * b, a - p0 * b, a - p0 * b)
EW(subs, 1, a - p1 * p0, a - p1 * p0, a - p1 * p0)
EW(mul, 2, a * b, a * b, a * b)
EW(muls, 1, a * p0, a * p0, a * p0)
EW(div, 2, a / b, a / b, NONE)
EW(divs, 1, a / p0, a / p0, NONE)

typedef struct shape2 {
	int other, alpha, out; // argument numbers; alpha -1: none; out 0: in place
	bool scalar, quotient;
} shape2;

static int scalar_dtype(int self, const fscalar *s) { return promote_scalar(self, s->dtype); }

static int meet(int dtype, bool quotient) { return quotient && !is_float(dtype) ? DT_F32 : dtype; }

static int binary_check(const fcall *c, char *err, size_t n, shape2 s) {
	CK(k);
	ft *a = ck_t(&k, 0, s.out ? "self" : "selfRef", D_MOST), *b = s.scalar ? NULL : ck_t(&k, s.other, "other", D_MOST);
	const fscalar *scalar = s.scalar ? ck_s(&k, s.other, "other") : NULL;
	const fscalar *alpha = s.alpha >= 0 ? ck_s(&k, s.alpha, "alpha") : NULL;
	ft *out = ck_t(&k, s.out, s.out ? "out" : "selfRef", D_MOST);
	if (k.rc) return k.rc;
	const ft *in[2] = {a, b};
	int dtype = ck_broadcast(&k, s.scalar ? 1 : 2, in, out, s.out ? "out" : "selfRef");
	if (scalar) dtype = scalar_dtype(a->dtype, scalar);
	if (alpha && is_float(alpha->dtype) && !is_float(dtype) && !k.rc) {
		ck_fail(&k, ACLNN_PARAM, "alpha dtype DT_%s can't be cast to the promoted type DT_%s.", dtype_name(alpha->dtype), dtype_name(dtype));
	}
	ck_castable(&k, meet(dtype, s.quotient), out, s.out ? "out" : "selfRef");
	return k.rc;
}

static int binary_run(const fcall *c, shape2 s, const ew *k) {
	const ft *in[2] = {c->a[0].t, s.scalar ? NULL : c->a[s.other].t};
	int dtype = s.scalar ? scalar_dtype(in[0]->dtype, c->a[s.other].s) : promote(in[0]->dtype, in[1]->dtype);
	double p[2] = {s.alpha >= 0 ? c->a[s.alpha].s->f : 1, s.scalar ? c->a[s.other].s->f : 0};
	if (s.scalar && s.alpha < 0) p[0] = p[1];
	ew_run(c->a[s.out].t, s.scalar ? 1 : 2, in, meet(dtype, s.quotient), k, p);
	return 0;
}

#define BINARY(name, kernel, ...) \
	static const shape2 name##_s = {__VA_ARGS__}; \
	static int name##_check(const fcall *c, char *err, size_t n) { return binary_check(c, err, n, name##_s); } \
	static int name##_run(const fcall *c) { return binary_run(c, name##_s, &kernel##_k); } \
	FOP(name) = {.check = name##_check, .run = name##_run};

BINARY(Add, add, .other = 1, .alpha = 2, .out = 3)
BINARY(Adds, adds, .other = 1, .alpha = 2, .out = 3, .scalar = true)
BINARY(InplaceAdd, add, .other = 1, .alpha = 2)
BINARY(InplaceAdds, adds, .other = 1, .alpha = 2, .scalar = true)
BINARY(Sub, sub, .other = 1, .alpha = 2, .out = 3)
BINARY(Subs, subs, .other = 1, .alpha = 2, .out = 3, .scalar = true)
BINARY(InplaceSub, sub, .other = 1, .alpha = 2)
BINARY(Mul, mul, .other = 1, .alpha = -1, .out = 2)
BINARY(Muls, muls, .other = 1, .alpha = -1, .out = 2, .scalar = true)
BINARY(InplaceMul, mul, .other = 1, .alpha = -1)
BINARY(InplaceMuls, muls, .other = 1, .alpha = -1, .scalar = true)
BINARY(Div, div, .other = 1, .alpha = -1, .out = 2, .quotient = true)
BINARY(Divs, divs, .other = 1, .alpha = -1, .out = 2, .scalar = true, .quotient = true)
BINARY(InplaceDiv, div, .other = 1, .alpha = -1, .quotient = true)
BINARY(InplaceDivs, divs, .other = 1, .alpha = -1, .scalar = true, .quotient = true)

#define MAX2(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
#define MIN2(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))
EW(maximum, 2, MAX2(a, b), MAX2(a, b), MAX2(a, b))
EW(minimum, 2, MIN2(a, b), MIN2(a, b), MIN2(a, b))

BINARY(Maximum, maximum, .other = 1, .alpha = -1, .out = 2)
BINARY(Minimum, minimum, .other = 1, .alpha = -1, .out = 2)

EW(xor2, 2, NONE, NONE, a ^ b)

static int BitwiseXorTensor_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_t(&k, 0, "self", D_INT | D(BOOL));
	ck_t(&k, 1, "other", D_INT | D(BOOL));
	if (k.rc) return k.rc;
	return binary_check(c, err, n, (shape2){.other = 1, .alpha = -1, .out = 2});
}

static int BitwiseXorTensor_run(const fcall *c) { return binary_run(c, (shape2){.other = 1, .alpha = -1, .out = 2}, &xor2_k); }

FOP(BitwiseXorTensor) = {.check = BitwiseXorTensor_check, .run = BitwiseXorTensor_run};

// Lerps: self + weight·(end - self).
#define LERP(a, b) ((double)p0 < 0.5 ? (a) + p0 * ((b) - (a)) : (b) - ((b) - (a)) * (1 - p0))
EW(lerp, 2, LERP(a, b), LERP(a, b), NONE)

static int lerp_check(ck *k, int out) {
	ft *a = ck_t(k, 0, out ? "self" : "selfRef", D_FLOAT), *b = ck_t(k, 1, "end", D_FLOAT), *y = ck_t(k, out, out ? "out" : "selfRef", D_FLOAT);
	ck_s(k, 2, "weight");
	if (k->rc) return k->rc;
	ck_alike(k, a, "self", b, "end");
	ck_alike(k, a, "self", y, "out");
	const ft *in[2] = {a, b};
	ck_broadcast(k, 2, in, y, out ? "out" : "selfRef");
	return k->rc;
}

static int lerp_run(const fcall *c, int out) {
	const ft *in[2] = {c->a[0].t, c->a[1].t};
	const double p[2] = {c->a[2].s->f, 0};
	ew_run(c->a[out].t, 2, in, in[0]->dtype, &lerp_k, p);
	return 0;
}

static int Lerps_check(const fcall *c, char *err, size_t n) {
	CK(k);
	return lerp_check(&k, 3);
}
static int Lerps_run(const fcall *c) { return lerp_run(c, 3); }
FOP(Lerps) = {.check = Lerps_check, .run = Lerps_run};

static int InplaceLerps_check(const fcall *c, char *err, size_t n) {
	CK(k);
	return lerp_check(&k, 0);
}
static int InplaceLerps_run(const fcall *c) { return lerp_run(c, 0); }
FOP(InplaceLerps) = {.check = InplaceLerps_check, .run = InplaceLerps_run};
