// ApplyAdamWV2 and operators over lists of tensors.
#include "op.h"

#include <math.h>

static int ApplyAdamWV2_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *w = ck_t(&k, 0, "varRef", D_FLOAT), *m = ck_t(&k, 1, "mRef", D_FLOAT), *v = ck_t(&k, 2, "vRef", D_FLOAT), *g = ck_t(&k, 4, "grad", D_FLOAT);
	ft *step = ck_t(&k, 5, "step", D(I64) | D(F32)), *max = c->a[11].i ? ck_t(&k, 3, "maxGradNormOptionalRef", D_FLOAT) : NULL;
	ck_same(&k, w, "varRef", m, "mRef");
	ck_same(&k, w, "varRef", v, "vRef");
	ck_same(&k, w, "varRef", g, "grad");
	ck_same(&k, w, "varRef", max, "maxGradNormOptionalRef");
	ck_alike(&k, w, "varRef", m, "mRef");
	ck_alike(&k, w, "varRef", v, "vRef");
	ck_alike(&k, w, "varRef", max, "maxGradNormOptionalRef");
	if (k.rc) return k.rc;
	if (w->dtype != DT_F32) ck_alike(&k, w, "varRef", g, "grad"); // f32 states go with a 16-bit gradient, nothing else mixes
	if (ft_numel(step) != 1) ck_fail(&k, ACLNN_PARAM, "step has %lld elements, expected 1.", (long long)ft_numel(step));
	if (!c->a[11].i && c->a[3].t) ck_fail(&k, ACLNN_PARAM, "maxGradNormOptionalRef should be null without amsgrad.");
	return k.rc;
}

// step counts the updates that are done: the kernel adds one before it corrects the bias.
static int ApplyAdamWV2_run(const fcall *c) {
	const ft *w = c->a[0].t;
	int64_t n = ft_numel(w);
	float *pw = pack_f(w), *m = pack_f(c->a[1].t), *v = pack_f(c->a[2].t), *g = pack_f(c->a[4].t), *max = c->a[11].i ? pack_f(c->a[3].t) : NULL;
	double t = value_load(c->a[5].t->base, c->a[5].t->dtype, c->a[5].t->offset) + 1;
	const float lr = (float)c->a[6].f, b1 = (float)c->a[7].f, b2 = (float)c->a[8].f, wd = (float)c->a[9].f, eps = (float)c->a[10].f;
	const float bc1 = (float)(1 - pow(b1, t)), bc2 = (float)(1 - pow(b2, t)), sign = c->a[12].i ? -1 : 1;
	for (int64_t i = 0; i < n; i++) {
		float x = sign * g[i], top;
		pw[i] -= lr * wd * pw[i];
		m[i] = b1 * m[i] + (1 - b1) * x;
		v[i] = b2 * v[i] + (1 - b2) * x * x;
		if (max) max[i] = fmaxf(max[i], v[i]);
		top = max ? max[i] : v[i];
		pw[i] -= lr * (m[i] / bc1) / (sqrtf(top / bc2) + eps);
	}
	unpack_f(w, pw);
	unpack_f(c->a[1].t, m);
	unpack_f(c->a[2].t, v);
	if (max) unpack_f(c->a[3].t, max);
	free(pw), free(m), free(v), free(g), free(max);
	return 0;
}
FOP(ApplyAdamWV2) = {.check = ApplyAdamWV2_check, .run = ApplyAdamWV2_run};

typedef struct lists {
	int in, out, scalar; // how many inputs lead; argument numbers, -1: none
	uint32_t dtypes;
	bool one; // results have one element
} lists;

// lists_check: A2 and newer, contiguous tensors, lists of one length, equal shapes and dtypes at each place.
static int lists_check(const fcall *c, char *err, size_t n, lists s) {
	static const char *const name[] = {"x1", "x2", "x3"};
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	const flist *first = ck_list(&k, 0, s.in > 1 ? name[0] : "x", s.dtypes);
	if (s.scalar >= 0) ck_s(&k, s.scalar, "scalar");
	for (int i = 0; i <= s.in && !k.rc; i++) {
		int at = i < s.in ? i : s.out;
		if (i == s.in && s.out < 0) break;
		const char *what = i == s.in ? "out" : s.in > 1 ? name[i] : "x";
		const flist *l = ck_list(&k, at, what, s.dtypes);
		if (k.rc) break;
		if (l->n != first->n) ck_fail(&k, ACLNN_PARAM, "%s has %lld tensors, expected %lld.", what, (long long)l->n, (long long)first->n);
		for (int64_t j = 0; j < l->n && !k.rc; j++) {
			ck_contiguous(&k, l->t[j], what);
			ck_alike(&k, first->t[0], "the first tensor", l->t[j], what);
			if (i < s.in || !s.one) ck_same(&k, first->t[j], "x", l->t[j], what);
			else if (ft_numel(l->t[j]) != 1) ck_fail(&k, ACLNN_PARAM, "%s[%lld] should have 1 element.", what, (long long)j);
		}
	}
	return k.rc;
}

typedef float (*each)(const float *x, float s);

static int lists_run(const fcall *c, lists s, each f) {
	const float scalar = s.scalar >= 0 ? (float)c->a[s.scalar].s->f : 0;
	const flist *first = c->a[0].l;
	for (int64_t j = 0; j < first->n; j++) {
		int64_t n = ft_numel(first->t[j]);
		const ft *out = s.out >= 0 ? c->a[s.out].l->t[j] : first->t[j];
		float *v[3] = {NULL}, *y = room(n, 4), x[3] = {0};
		for (int i = 0; i < s.in; i++) v[i] = pack_f(c->a[i].l->t[j]);
		for (int64_t i = 0; i < n; i++) {
			for (int q = 0; q < s.in; q++) x[q] = v[q][i];
			y[i] = f(x, scalar);
		}
		unpack_f(out, y);
		free(v[0]), free(v[1]), free(v[2]), free(y);
	}
	return 0;
}

#define FOREACH(name, expr, ...) \
	static const lists name##_s = {__VA_ARGS__}; \
	static float name##_each(const float *x, float s) { \
		(void)x, (void)s; \
		return expr; \
	} \
	static int name##_check(const fcall *c, char *err, size_t n) { return lists_check(c, err, n, name##_s); } \
	static int name##_run(const fcall *c) { return lists_run(c, name##_s, name##_each); } \
	FOP(name) = {.check = name##_check, .run = name##_run};

FOREACH(ForeachAddListV2, x[0] + s * x[1], .in = 2, .scalar = 2, .out = 3, .dtypes = D_FLOAT | D(I32))
FOREACH(ForeachMulScalarV2, x[0] * s, .in = 1, .scalar = 1, .out = 2, .dtypes = D_FLOAT | D(I32))
FOREACH(ForeachAddcmulScalarV2, x[0] + s * x[1] * x[2], .in = 3, .scalar = 3, .out = 4, .dtypes = D_FLOAT | D(I32))
FOREACH(ForeachAddcdivScalarV2, x[0] + s * x[1] / x[2], .in = 3, .scalar = 3, .out = 4, .dtypes = D_FLOAT)
FOREACH(ForeachLerpScalar, x[0] + s * (x[1] - x[0]), .in = 2, .scalar = 2, .out = 3, .dtypes = D_FLOAT)
FOREACH(ForeachSqrt, sqrtf(x[0]), .in = 1, .scalar = -1, .out = 1, .dtypes = D_FLOAT)
FOREACH(ForeachZeroInplace, 0, .in = 1, .scalar = -1, .out = -1, .dtypes = D_FLOAT | D(I16) | D(I32))

static const lists copy_lists = {.in = 1, .scalar = -1, .out = 1, .dtypes = D_MOST};
static int ForeachCopy_check(const fcall *c, char *err, size_t n) { return lists_check(c, err, n, copy_lists); }
static int ForeachCopy_run(const fcall *c) {
	for (int64_t j = 0; j < c->a[0].l->n; j++) copy_into(c->a[1].l->t[j], c->a[0].l->t[j]);
	return 0;
}
FOP(ForeachCopy) = {.check = ForeachCopy_check, .run = ForeachCopy_run};

static const lists norm_lists = {.in = 1, .scalar = 1, .out = 2, .dtypes = D_FLOAT, .one = true};
static int ForeachNorm_check(const fcall *c, char *err, size_t n) {
	int rc = lists_check(c, err, n, norm_lists);
	CK(k);
	double p = rc ? 2 : c->a[1].s->f;
	if (!rc && p != 1 && p != 2) rc = ck_fail(&k, ACLNN_PARAM, "scalar is %g, should be 1 or 2.", p);
	return rc;
}
static int ForeachNorm_run(const fcall *c) {
	for (int64_t j = 0; j < c->a[0].l->n; j++) {
		const ft *x = c->a[0].l->t[j];
		double *v = pack_d(x), s = 0;
		for (int64_t i = 0; i < ft_numel(x); i++) s += c->a[1].s->f == 2 ? v[i] * v[i] : fabs(v[i]);
		if (c->a[1].s->f == 2) s = sqrt(s);
		unpack_d(c->a[2].l->t[j], &s);
		free(v);
	}
	return 0;
}
FOP(ForeachNorm) = {.check = ForeachNorm_check, .run = ForeachNorm_run};

static int ForeachNonFiniteCheckAndUnscale_check(const fcall *c, char *err, size_t n) {
	int rc = lists_check(c, err, n, (lists){.in = 1, .scalar = -1, .out = -1, .dtypes = D_FLOAT});
	if (rc) return rc;
	CK(k);
	ft *found = ck_t(&k, 1, "foundInf", D(F32)), *scale = ck_t(&k, 2, "invScale", D(F32));
	if (k.rc) return k.rc;
	if (ft_numel(found) != 1 || ft_numel(scale) != 1) ck_fail(&k, ACLNN_PARAM, "foundInf and invScale should have 1 element.");
	return k.rc;
}
static int ForeachNonFiniteCheckAndUnscale_run(const fcall *c) {
	float scale = (float)value_load(c->a[2].t->base, DT_F32, c->a[2].t->offset);
	for (int64_t j = 0; j < c->a[0].l->n; j++) {
		const ft *x = c->a[0].l->t[j];
		float *v = pack_f(x);
		for (int64_t i = 0; i < ft_numel(x); i++) {
			if (!isfinite(v[i])) value_store(c->a[1].t->base, DT_F32, c->a[1].t->offset, 1);
			v[i] *= scale;
		}
		unpack_f(x, v);
		free(v);
	}
	return 0;
}
FOP(ForeachNonFiniteCheckAndUnscale) = {.check = ForeachNonFiniteCheckAndUnscale_check, .run = ForeachNonFiniteCheckAndUnscale_run};
