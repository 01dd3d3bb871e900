// SwiGlu: x is two halves along dim, out = silu(first)·second. Contiguous tensors only.
#include "op.h"

#include <math.h>

static int swiglu_check(const fcall *c, char *err, size_t n, bool back) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *g = back ? ck_t(&k, 0, "yGrad", D_FLOAT) : NULL, *x = ck_t(&k, back, "x", D_FLOAT), *y = ck_t(&k, back ? 3 : 2, "out", D_FLOAT);
	int d = ck_dim(&k, x, "dim", c->a[back ? 2 : 1].i);
	ck_rank(&k, x, "x", 1, FAKE_DIMS);
	if (k.rc) return k.rc;
	if (x->dims[d] % 2) return ck_fail(&k, ACLNN_PARAM, "dim %d of x is %lld, which is odd.", d, (long long)x->dims[d]);
	int64_t half[FAKE_DIMS];
	memcpy(half, x->dims, sizeof half);
	half[d] /= 2;
	ck_contiguous(&k, x, "x");
	ck_contiguous(&k, y, "out");
	ck_alike(&k, x, "x", y, "out");
	ck_shape(&k, y, "out", x->nd, back ? x->dims : half);
	if (back) {
		ck_contiguous(&k, g, "yGrad");
		ck_alike(&k, x, "x", g, "yGrad");
		ck_shape(&k, g, "yGrad", x->nd, half);
	}
	return k.rc;
}

// halves splits x into blocks of two halves of n elements.
static int64_t halves(const ft *x, int64_t dim) {
	int d = (int)(dim < 0 ? dim + x->nd : dim);
	int64_t n = x->dims[d] / 2;
	for (int i = d + 1; i < x->nd; i++) n *= x->dims[i];
	return n;
}

static int SwiGlu_check(const fcall *c, char *err, size_t n) { return swiglu_check(c, err, n, false); }
static int SwiGlu_run(const fcall *c) {
	int64_t h = halves(c->a[0].t, c->a[1].i), n = ft_numel(c->a[2].t);
	float *x = pack_f(c->a[0].t), *y = room(n, 4);
	for (int64_t i = 0; i < n; i++) {
		float a = x[i / h * 2 * h + i % h], b = x[i / h * 2 * h + h + i % h];
		y[i] = a / (1 + expf(-a)) * b;
	}
	unpack_f(c->a[2].t, y);
	free(x), free(y);
	return 0;
}
FOP(SwiGlu) = {.check = SwiGlu_check, .run = SwiGlu_run};

static int SwiGluGrad_check(const fcall *c, char *err, size_t n) { return swiglu_check(c, err, n, true); }
static int SwiGluGrad_run(const fcall *c) {
	int64_t h = halves(c->a[1].t, c->a[2].i), n = ft_numel(c->a[0].t);
	float *g = pack_f(c->a[0].t), *x = pack_f(c->a[1].t);
	for (int64_t i = 0; i < n; i++) {
		float *a = x + i / h * 2 * h + i % h, *b = a + h, s = 1 / (1 + expf(-*a)), da = g[i] * *b * s * (1 + *a * (1 - s));
		*b = g[i] * *a * s;
		*a = da;
	}
	unpack_f(c->a[3].t, x);
	free(g), free(x);
	return 0;
}
FOP(SwiGluGrad) = {.check = SwiGluGrad_check, .run = SwiGluGrad_run};
