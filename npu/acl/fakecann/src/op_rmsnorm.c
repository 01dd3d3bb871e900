// RmsNorm. A 16-bit x goes with an f32 gamma; AddRmsNorm wants one dtype for all. rstd and dgamma are always f32.
#include "op.h"

#include <math.h>

// gamma_shape checks that gamma has the last dims of x, and returns how many elements that is.
static void gamma_shape(ck *k, const ft *x, const ft *g) {
	if (k->rc) return;
	ck_rank(k, g, "gamma", 1, x->nd);
	if (!k->rc) ck_shape(k, g, "gamma", g->nd, x->dims + x->nd - g->nd);
}

static void gamma_dtype(ck *k, const ft *x, const ft *g) {
	if (k->rc || g->dtype == DT_F32) return;
	ck_alike(k, x, "x", g, "gamma");
}

static void rstd_shape(ck *k, const ft *x, const ft *g, const ft *r, const char *name) {
	if (k->rc) return;
	int64_t want[FAKE_DIMS];
	for (int i = 0; i < x->nd; i++) want[i] = i < x->nd - g->nd ? x->dims[i] : 1;
	ck_shape(k, r, name, x->nd, want);
}

static int RmsNorm_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *x = ck_t(&k, 0, "x", D_FLOAT), *g = ck_t(&k, 1, "gamma", D_FLOAT), *y = ck_t(&k, 3, "yOut", D_FLOAT), *r = ck_t(&k, 4, "rstdOut", D(F32));
	gamma_shape(&k, x, g);
	gamma_dtype(&k, x, g);
	ck_same(&k, x, "x", y, "yOut");
	ck_alike(&k, x, "x", y, "yOut");
	rstd_shape(&k, x, g, r, "rstdOut");
	return k.rc;
}

static void rms(const ft *x, const float *px, const ft *gamma, double eps, const ft *y, const ft *rstd) {
	int64_t d = ft_numel(gamma), rows = d ? ft_numel(x) / d : 0;
	float *g = pack_f(gamma), *py = room(rows * d, 4), *r = room(rows, 4);
	for (int64_t i = 0; i < rows; i++) {
		const float *row = px + i * d;
		double s = 0;
		for (int64_t j = 0; j < d; j++) s += (double)row[j] * row[j];
		r[i] = (float)(1 / sqrt(s / (double)d + eps));
		for (int64_t j = 0; j < d; j++) py[i * d + j] = row[j] * r[i] * g[j];
	}
	unpack_f(y, py);
	unpack_f(rstd, r);
	free(g), free(py), free(r);
}

static int RmsNorm_run(const fcall *c) {
	float *x = pack_f(c->a[0].t);
	rms(c->a[0].t, x, c->a[1].t, c->a[2].f, c->a[3].t, c->a[4].t);
	free(x);
	return 0;
}
static int64_t RmsNorm_ws(const fcall *c) { return ws_of(c->a[4].t); }
FOP(RmsNorm) = {.check = RmsNorm_check, .run = RmsNorm_run, .workspace = RmsNorm_ws};

static int AddRmsNorm_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *x = ck_t(&k, 0, "x1", D_FLOAT), *x2 = ck_t(&k, 1, "x2", D_FLOAT), *g = ck_t(&k, 2, "gamma", D_FLOAT);
	ft *y = ck_t(&k, 4, "yOut", D_FLOAT), *r = ck_t(&k, 5, "rstdOut", D(F32)), *s = ck_t(&k, 6, "xOut", D_FLOAT);
	gamma_shape(&k, x, g);
	ck_alike(&k, x, "x1", g, "gamma");
	ck_same(&k, x, "x1", x2, "x2");
	ck_alike(&k, x, "x1", x2, "x2");
	ck_same(&k, x, "x1", y, "yOut");
	ck_alike(&k, x, "x1", y, "yOut");
	ck_same(&k, x, "x1", s, "xOut");
	ck_alike(&k, x, "x1", s, "xOut");
	rstd_shape(&k, x, g, r, "rstdOut");
	return k.rc;
}

static int AddRmsNorm_run(const fcall *c) {
	const ft *x = c->a[0].t;
	int64_t n = ft_numel(x);
	float *a = pack_f(x), *b = pack_f(c->a[1].t);
	for (int64_t i = 0; i < n; i++) a[i] += b[i];
	round_f(a, n, x->dtype);
	unpack_f(c->a[6].t, a);
	rms(x, a, c->a[2].t, c->a[3].f, c->a[4].t, c->a[5].t);
	free(a), free(b);
	return 0;
}
FOP(AddRmsNorm) = {.check = AddRmsNorm_check, .run = AddRmsNorm_run, .workspace = RmsNorm_ws};

static int RmsNormGrad_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *dy = ck_t(&k, 0, "dy", D_FLOAT), *x = ck_t(&k, 1, "x", D_FLOAT), *r = ck_t(&k, 2, "rstd", D(F32)), *g = ck_t(&k, 3, "gamma", D_FLOAT);
	ft *dx = ck_t(&k, 4, "dxOut", D_FLOAT), *dg = ck_t(&k, 5, "dgammaOut", D(F32));
	ck_rank(&k, x, "x", 2, FAKE_DIMS);
	gamma_shape(&k, x, g);
	gamma_dtype(&k, x, g);
	ck_same(&k, x, "x", dy, "dy");
	ck_alike(&k, x, "x", dy, "dy");
	ck_same(&k, x, "x", dx, "dxOut");
	ck_alike(&k, x, "x", dx, "dxOut");
	ck_same(&k, g, "gamma", dg, "dgammaOut");
	if (k.rc) return k.rc;
	if (ft_numel(r) * ft_numel(g) != ft_numel(x)) ck_fail(&k, ACLNN_PARAM, "rstd has %lld elements, expected one per row.", (long long)ft_numel(r));
	return k.rc;
}

static int RmsNormGrad_run(const fcall *c) {
	int64_t d = ft_numel(c->a[3].t), rows = d ? ft_numel(c->a[1].t) / d : 0;
	float *dy = pack_f(c->a[0].t), *x = pack_f(c->a[1].t), *r = pack_f(c->a[2].t), *g = pack_f(c->a[3].t);
	enum { PARTS = 8 };
	double *dg = room(PARTS * d, 8), *sum = room(d, 8), part[PARTS];
	for (int64_t i = 0; i < rows; i++) {
		double dot = 0;
		for (int64_t j = i * d; j < (i + 1) * d; j++) {
			dot += (double)dy[j] * g[j - i * d] * x[j];
			dg[i % PARTS * d + j - i * d] += (double)dy[j] * x[j] * r[i];
		}
		const float mean = (float)(dot / (double)d * r[i] * r[i]);
		for (int64_t j = i * d; j < (i + 1) * d; j++) dy[j] = r[i] * (dy[j] * g[j - i * d] - x[j] * mean);
	}
	for (int64_t j = 0; j < d; j++) {
		for (int p = 0; p < PARTS; p++) part[p] = dg[p * d + j];
		sum[j] = sum_parts(c, (uint64_t)j, part, PARTS);
	}
	unpack_f(c->a[4].t, dy);
	unpack_d(c->a[5].t, sum);
	free(dy), free(x), free(r), free(g), free(dg), free(sum);
	return 0;
}
static int64_t RmsNormGrad_ws(const fcall *c) { return ws_of(c->a[5].t) * 8; }
FOP(RmsNormGrad) = {.check = RmsNormGrad_check, .run = RmsNormGrad_run, .workspace = RmsNormGrad_ws, .nondeterministic = true};
