// Elementwise operators of one operand, and gradients of activations.
#include "op_ew.h"

static int unary_check(const fcall *c, char *err, size_t n, const char *self, uint32_t dtypes) {
	CK(k);
	ft *x = ck_t(&k, 0, self, dtypes), *y = ck_t(&k, 1, "out", D_MOST);
	if (k.rc) return k.rc;
	ck_same(&k, x, self, y, "out");
	ck_castable(&k, x->dtype, y, "out");
	return k.rc;
}

static int unary_run(const fcall *c, const ew *k, double p0) {
	const ft *in[1] = {c->a[0].t};
	const double p[2] = {p0, 0};
	ew_run(c->a[1].t, 1, in, in[0]->dtype, k, p);
	return 0;
}

#define UNARY(name, self, dtypes, fx, dx, ix) \
	EW(name, 1, fx, dx, ix) \
	static int name##_check(const fcall *c, char *err, size_t n) { return unary_check(c, err, n, self, dtypes); } \
	static int name##_run(const fcall *c) { return unary_run(c, &name##_k, 0); } \
	FOP(name) = {.check = name##_check, .run = name##_run};

#define RELU(a) ((a) > 0 || (a) != (a) ? (a) : 0)
#define D_RELU (D_FLOAT | D(I8) | D(I32) | D(I64))

UNARY(Neg, "self", D_FLOAT64 | D(I8) | D(I32) | D(I64), -a, -a, -a)
UNARY(Exp, "self", D_FLOAT, expf(a), exp(a), NONE)
UNARY(Log, "self", D_FLOAT64, logf(a), log(a), NONE)
UNARY(Sqrt, "self", D_FLOAT64, sqrtf(a), sqrt(a), NONE)
UNARY(Rsqrt, "self", D_FLOAT64, 1 / sqrtf(a), 1 / sqrt(a), NONE)
UNARY(Abs, "self", D_FLOAT, fabsf(a), fabs(a), NONE)
UNARY(Reciprocal, "self", D_FLOAT64, 1 / a, 1 / a, NONE)
UNARY(Tanh, "self", D_FLOAT, tanhf(a), tanh(a), NONE)
UNARY(Sigmoid, "self", D_FLOAT, 1 / (1 + expf(-a)), 1 / (1 + exp(-a)), NONE)
UNARY(Silu, "self", D_FLOAT, a / (1 + expf(-a)), a / (1 + exp(-a)), NONE)
UNARY(Sign, "self", D_FLOAT64 | D(I32) | D(I64), (a > 0) - (a < 0), (a > 0) - (a < 0), (a > 0) - (a < 0))
UNARY(Sin, "self", D_FLOAT64, sinf(a), sin(a), NONE)
UNARY(Cos, "input", D_FLOAT, cosf(a), cos(a), NONE)
UNARY(Relu, "self", D_RELU, RELU(a), RELU(a), RELU(a))

static int InplaceRelu_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_t(&k, 0, "selfRef", D_RELU);
	return k.rc;
}

static int InplaceRelu_run(const fcall *c) {
	const ft *in[1] = {c->a[0].t};
	ew_run(in[0], 1, in, in[0]->dtype, &Relu_k, NULL);
	return 0;
}

FOP(InplaceRelu) = {.check = InplaceRelu_check, .run = InplaceRelu_run};

static inline double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
static inline double gelu_erf(double x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)); }

// aclnnGelu is the form with tanh.
UNARY(Gelu, "self", D_FLOAT, gelu_tanh((double)a), gelu_tanh(a), NONE)
EW(gelu_exact, 1, gelu_erf((double)a), gelu_erf(a), NONE)

static int GeluV2_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "x", D_FLOAT), *y = ck_t(&k, 2, "y", D_FLOAT);
	if (k.rc) return k.rc;
	ck_same(&k, x, "x", y, "y");
	ck_alike(&k, x, "x", y, "y");
	ck_between(&k, "approximate", c->a[1].i, 0, 1);
	return k.rc;
}

static int GeluV2_run(const fcall *c) {
	const ft *in[1] = {c->a[0].t};
	ew_run(c->a[2].t, 1, in, in[0]->dtype, c->a[1].i ? &Gelu_k : &gelu_exact_k, NULL);
	return 0;
}

FOP(GeluV2) = {.check = GeluV2_check, .run = GeluV2_run};

static double gelu_slope(double x, bool form_tanh) {
	if (!form_tanh) return 0.5 * (1 + erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * exp(-0.5 * x * x);
	double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

EW(gelu_back, 2, a * gelu_slope((double)b, p0 != 0), a * gelu_slope(b, p0 != 0), NONE)

// gradient_check: gradOutput, self and a result, all of one shape and dtype.
static int gradient_check(ck *k, int out, const char *name, uint32_t dtypes) {
	ft *g = ck_t(k, 0, "gradOutput", dtypes), *x = ck_t(k, 1, "self", dtypes), *y = ck_t(k, out, name, dtypes);
	if (k->rc) return k->rc;
	ck_same(k, g, "gradOutput", x, "self");
	ck_same(k, g, "gradOutput", y, name);
	ck_alike(k, g, "gradOutput", x, "self");
	ck_alike(k, g, "gradOutput", y, name);
	return k->rc;
}

static int gradient_run(const fcall *c, int out, const ew *k, double p0) {
	const ft *in[2] = {c->a[0].t, c->a[1].t};
	const double p[2] = {p0, 0};
	ew_run(c->a[out].t, 2, in, in[0]->dtype, k, p);
	return 0;
}

static int GeluBackwardV2_check(const fcall *c, char *err, size_t n) {
	CK(k);
	gradient_check(&k, 3, "gradInput", D_FLOAT);
	const char *s = c->a[2].str;
	if (!k.rc && !s) ck_fail(&k, ACLNN_NULLPTR, "Expected a string but got null for argument approximate.");
	if (!k.rc && strcmp(s, "none") && strcmp(s, "tanh")) ck_fail(&k, ACLNN_PARAM, "approximate is %s, should be none or tanh.", s);
	return k.rc;
}

static int GeluBackwardV2_run(const fcall *c) { return gradient_run(c, 3, &gelu_back_k, !strcmp(c->a[2].str, "tanh")); }

FOP(GeluBackwardV2) = {.check = GeluBackwardV2_check, .run = GeluBackwardV2_run};

static inline double silu_slope(double x) {
	double s = 1 / (1 + exp(-x));
	return s * (1 + x * (1 - s));
}

EW(silu_back, 2, a * silu_slope((double)b), a * silu_slope(b), NONE)

static int SiluBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	return gradient_check(&k, 2, "gradInput", D_FLOAT);
}

static int SiluBackward_run(const fcall *c) { return gradient_run(c, 2, &silu_back_k, 0); }

FOP(SiluBackward) = {.check = SiluBackward_check, .run = SiluBackward_run};

EW(threshold_back, 2, b > p0 ? a : 0, b > p0 ? a : 0, b > p0 ? a : 0)

static int ThresholdBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_s(&k, 2, "threshold");
	return gradient_check(&k, 3, "out", D_FLOAT | D_INT);
}

static int ThresholdBackward_run(const fcall *c) { return gradient_run(c, 3, &threshold_back_k, c->a[2].s->f); }

FOP(ThresholdBackward) = {.check = ThresholdBackward_check, .run = ThresholdBackward_run};

EW(power, 1, powf(a, p0), pow(a, p0), NONE)

static int PowTensorScalar_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT64), *y = ck_t(&k, 2, "out", D_FLOAT64);
	ck_s(&k, 1, "exponent");
	ck_same(&k, x, "self", y, "out");
	return k.rc;
}

static int PowTensorScalar_run(const fcall *c) {
	const ft *in[1] = {c->a[0].t};
	const double p[2] = {c->a[1].s->f, 0};
	ew_run(c->a[2].t, 1, in, in[0]->dtype, &power_k, p);
	return 0;
}

FOP(PowTensorScalar) = {.check = PowTensorScalar_check, .run = PowTensorScalar_run};

#define CLAMP(a) ((a) < p0 ? p0 : (a) > p1 ? p1 : (a))
EW(clamp, 1, CLAMP(a), CLAMP(a), CLAMP(a))

// clamp_check: bounds that are null are not certain to be supported, so they are refused.
static int clamp_check(ck *k, int bounds) {
	ft *x = ck_t(k, 0, "self", D_FLOAT64 | D_INT), *y = ck_t(k, 1 + bounds, "out", D_FLOAT64 | D_INT);
	ck_s(k, 1, "clipValueMin");
	if (bounds == 2) ck_s(k, 2, "clipValueMax");
	if (k->rc) return k->rc;
	ck_same(k, x, "self", y, "out");
	ck_castable(k, x->dtype, y, "out");
	return k->rc;
}

static int Clamp_check(const fcall *c, char *err, size_t n) {
	CK(k);
	return clamp_check(&k, 2);
}

static int Clamp_run(const fcall *c) {
	const ft *in[1] = {c->a[0].t};
	const double p[2] = {c->a[1].s->f, c->a[2].s->f};
	ew_run(c->a[3].t, 1, in, in[0]->dtype, &clamp_k, p);
	return 0;
}

FOP(Clamp) = {.check = Clamp_check, .run = Clamp_run};

#define CLAMP_MIN(a) ((a) < p0 ? p0 : (a))
EW(clamp_min, 1, CLAMP_MIN(a), CLAMP_MIN(a), CLAMP_MIN(a))

static int ClampMin_check(const fcall *c, char *err, size_t n) {
	CK(k);
	return clamp_check(&k, 1);
}

static int ClampMin_run(const fcall *c) {
	const ft *in[1] = {c->a[0].t};
	const double p[2] = {c->a[1].s->f, 0};
	ew_run(c->a[2].t, 1, in, in[0]->dtype, &clamp_min_k, p);
	return 0;
}

FOP(ClampMin) = {.check = ClampMin_check, .run = ClampMin_run};
