// Softmax, its logarithm, their gradients, and the masked form of attention without a fused kernel.
#include "op.h"

#include <math.h>

static int softmax_check(const fcall *c, char *err, size_t n, bool back) {
	static const char *const first[] = {"self", "gradOutput"};
	CK(k);
	uint32_t types = back ? D_FLOAT : D_FLOAT64;
	ft *x = ck_t(&k, 0, first[back], types), *y = back ? ck_t(&k, 1, "output", types) : NULL, *out = ck_t(&k, back ? 3 : 2, "out", types);
	ck_dim(&k, x, "dim", c->a[back ? 2 : 1].i);
	ck_same(&k, x, first[back], y, "output");
	ck_alike(&k, x, first[back], y, "output");
	ck_same(&k, x, first[back], out, "out");
	if (!back && out && !k.rc && !is_half(x->dtype)) ck_alike(&k, x, first[back], out, "out");
	if (back) ck_alike(&k, x, first[back], out, "out");
	return k.rc;
}

// soft turns a line into softmax or log-softmax.
static void soft(double *v, int64_t n, bool logarithm) {
	double m = -INFINITY, s = 0;
	for (int64_t i = 0; i < n; i++) m = fmax(m, v[i]);
	for (int64_t i = 0; i < n; i++) s += exp(v[i] - m);
	for (int64_t i = 0; i < n; i++) v[i] = logarithm ? v[i] - m - log(s) : exp(v[i] - m) / s;
}

static int softmax_run(const fcall *c, bool logarithm) {
	const int64_t dim = c->a[1].i;
	lines l = lines_of(c->a[0].t, &dim, 1, true), to = lines_of(c->a[2].t, &dim, 1, true);
	double *v = pack_d(&l.view);
	for (int64_t i = 0; i < l.outer; i++) soft(v + i * l.inner, l.inner, logarithm);
	unpack_d(&to.view, v);
	free(v);
	return 0;
}

// soft_back turns dy of a line into dx, given y.
static void soft_back(double *dy, const double *y, int64_t n, bool logarithm) {
	double s = 0;
	for (int64_t i = 0; i < n; i++) s += logarithm ? dy[i] : dy[i] * y[i];
	for (int64_t i = 0; i < n; i++) dy[i] = logarithm ? dy[i] - exp(y[i]) * s : y[i] * (dy[i] - s);
}

static int softmax_back(const fcall *c, bool logarithm) {
	const int64_t dim = c->a[2].i;
	lines l = lines_of(c->a[0].t, &dim, 1, true), ly = lines_of(c->a[1].t, &dim, 1, true), to = lines_of(c->a[3].t, &dim, 1, true);
	double *dy = pack_d(&l.view), *y = pack_d(&ly.view);
	for (int64_t i = 0; i < l.outer; i++) soft_back(dy + i * l.inner, y + i * l.inner, l.inner, logarithm);
	unpack_d(&to.view, dy);
	free(dy), free(y);
	return 0;
}

#define SOFTMAX(name, logarithm) \
	static int name##_check(const fcall *c, char *err, size_t n) { return softmax_check(c, err, n, false); } \
	static int name##_run(const fcall *c) { return softmax_run(c, logarithm); } \
	static int name##Backward_check(const fcall *c, char *err, size_t n) { return softmax_check(c, err, n, true); } \
	static int name##Backward_run(const fcall *c) { return softmax_back(c, logarithm); } \
	static int64_t name##_ws(const fcall *c) { return ws_of(c->a[2].t); } \
	FOP(name) = {.check = name##_check, .run = name##_run, .workspace = name##_ws}; \
	FOP(name##Backward) = {.check = name##Backward_check, .run = name##Backward_run};

SOFTMAX(Softmax, false)
SOFTMAX(LogSoftmax, true)

// masked_check: rank 4, lines of at most 4096, no triangle of its own, a mask that repeats over batches or heads at most.
static int masked_check(const fcall *c, char *err, size_t n, bool back) {
	CK(k);
	ck_soc(&k, SOC(A2) | SOC(A3));
	ft *x = ck_t(&k, 0, back ? "gradOutput" : "x", D_FLOAT), *y = back ? ck_t(&k, 1, "y", D_FLOAT) : NULL, *m = ck_t(&k, back ? 2 : 1, "mask", D(BOOL));
	ft *out = ck_t(&k, back ? 5 : 4, back ? "out" : "y", D_FLOAT);
	ck_rank(&k, x, "x", 4, 4);
	ck_rank(&k, m, "mask", 4, 4);
	ck_same(&k, x, "x", y, "y");
	ck_alike(&k, x, "x", y, "y");
	ck_same(&k, x, "x", out, "out");
	ck_alike(&k, x, "x", out, "out");
	ck_contiguous(&k, out, back ? "out" : "y");
	if (k.rc) return k.rc;
	ck_between(&k, "the last dim of x", x->dims[3], 1, 4096);
	if (c->a[back ? 4 : 3].i) ck_fail(&k, ACLNN_PARAM, "fixedTriuMask must be false.");
	for (int i = 0; i < 4; i++) {
		if (m->dims[i] != x->dims[i] && (i > 1 || m->dims[i] != 1)) ck_fail(&k, ACLNN_PARAM, "dim %d of mask is %lld, x has %lld.", i, (long long)m->dims[i],
			(long long)x->dims[i]);
	}
	return k.rc;
}

static double *mask_like(const ft *m, const ft *x) { // 1 where masked, in x's shape
	ft v = *m;
	for (int i = 0; i < 4; i++) {
		if (m->dims[i] != x->dims[i]) v.dims[i] = x->dims[i], v.strides[i] = 0;
	}
	return pack_d(&v);
}

static int ScaledMaskedSoftmax_check(const fcall *c, char *err, size_t n) { return masked_check(c, err, n, false); }
static int ScaledMaskedSoftmax_run(const fcall *c) {
	const ft *x = c->a[0].t;
	int64_t w = x->dims[3], n = ft_numel(x);
	double *v = pack_d(x), *m = mask_like(c->a[1].t, x);
	for (int64_t i = 0; i < n; i++) v[i] = m[i] != 0 ? -10000 : v[i] * c->a[2].f;
	for (int64_t i = 0; i < n; i += w) soft(v + i, w, false);
	unpack_d(c->a[4].t, v);
	free(v), free(m);
	return 0;
}
FOP(ScaledMaskedSoftmax) = {.check = ScaledMaskedSoftmax_check, .run = ScaledMaskedSoftmax_run};

static int ScaledMaskedSoftmaxBackward_check(const fcall *c, char *err, size_t n) { return masked_check(c, err, n, true); }
static int ScaledMaskedSoftmaxBackward_run(const fcall *c) {
	const ft *x = c->a[0].t;
	int64_t w = x->dims[3], n = ft_numel(x);
	double *v = pack_d(x), *y = pack_d(c->a[1].t), *m = mask_like(c->a[2].t, x);
	for (int64_t i = 0; i < n; i += w) soft_back(v + i, y + i, w, false);
	for (int64_t i = 0; i < n; i++) v[i] = m[i] != 0 ? 0 : v[i] * c->a[3].f;
	unpack_d(c->a[5].t, v);
	free(v), free(y), free(m);
	return 0;
}
FOP(ScaledMaskedSoftmaxBackward) = {.check = ScaledMaskedSoftmaxBackward_check, .run = ScaledMaskedSoftmaxBackward_run, .nondeterministic = true};
