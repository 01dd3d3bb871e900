// LayerNorm and its gradient. A 16-bit input goes with weights of its dtype or f32, and statistics of at least its width. Gradients of weights have the
// dtype of the weights.
#include "op.h"

#include <math.h>

// vector_check: an optional weight or bias of normalizedShape, in input's dtype or f32.
static void vector_check(ck *k, const ft *x, const farray *shape, const ft *w, const char *name) {
	if (k->rc || !w) return;
	ck_shape(k, w, name, (int)shape->n, shape->i);
	if (w->dtype != DT_F32) ck_alike(k, x, "input", w, name);
}

// shape_check: normalizedShape are the last dims of input.
static const farray *shape_check(ck *k, int i, const ft *x) {
	const farray *shape = ck_array(k, i, "normalizedShape", 1, FAKE_DIMS);
	if (k->rc) return NULL;
	if (shape->n > x->nd) ck_fail(k, ACLNN_PARAM, "input has %d dims, normalizedShape has %lld.", x->nd, (long long)shape->n);
	for (int64_t d = 0; d < shape->n && !k->rc; d++)
		if (shape->i[d] != x->dims[x->nd - shape->n + d]) ck_fail(k, ACLNN_PARAM, "normalizedShape should be the last dims of input.");
	return k->rc ? NULL : shape;
}

// statistic_check: [A1,...,1,...,1], f32 or of input's dtype.
static void statistic_check(ck *k, const ft *x, const farray *shape, const ft *m, const char *name) {
	if (k->rc || !m) return;
	int64_t want[FAKE_DIMS];
	for (int i = 0; i < x->nd; i++) want[i] = i < x->nd - shape->n ? x->dims[i] : 1;
	ck_shape(k, m, name, x->nd, want);
	if (m->dtype != DT_F32) ck_alike(k, x, "input", m, name);
}

static int LayerNorm_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "input", D_FLOAT);
	if (k.rc) return k.rc;
	const farray *shape = shape_check(&k, 1, x);
	ft *w = ck_opt(&k, 2, "weightOptional", D_FLOAT), *b = ck_opt(&k, 3, "biasOptional", D_FLOAT), *y = ck_t(&k, 5, "out", D_FLOAT);
	ft *mean = ck_opt(&k, 6, "meanOutOptional", D_FLOAT), *rstd = ck_opt(&k, 7, "rstdOutOptional", D_FLOAT);
	vector_check(&k, x, shape, w, "weightOptional");
	vector_check(&k, x, shape, b, "biasOptional");
	if (w && b) ck_alike(&k, w, "weightOptional", b, "biasOptional");
	ck_same(&k, x, "input", y, "out");
	ck_alike(&k, x, "input", y, "out");
	statistic_check(&k, x, shape, mean, "meanOutOptional");
	statistic_check(&k, x, shape, rstd, "rstdOutOptional");
	if (mean && rstd) ck_alike(&k, mean, "meanOutOptional", rstd, "rstdOutOptional");
	return k.rc;
}

// row_of is the number of elements that are normalised together.
static int64_t row_of(const farray *shape) {
	int64_t d = 1;
	for (int64_t i = 0; i < shape->n; i++) d *= shape->i[i];
	return d;
}

// vector is w in f32, or d times a value where there is none.
static float *vector(const ft *w, int64_t d, float value) {
	if (w) return pack_f(w);
	float *v = room(d, 4);
	for (int64_t j = 0; j < d; j++) v[j] = value;
	return v;
}

static int LayerNorm_run(const fcall *c) {
	const ft *x = c->a[0].t;
	int64_t d = row_of(c->a[1].a), rows = d ? ft_numel(x) / d : 0;
	float *px = pack_f(x), *w = vector(c->a[2].t, d, 1), *b = vector(c->a[3].t, d, 0), *mean = room(rows, 4), *rstd = room(rows, 4);
	for (int64_t i = 0; i < rows; i++) {
		float *row = px + i * d;
		double sum = 0, sq = 0;
		for (int64_t j = 0; j < d; j++) sum += row[j];
		sum /= (double)d;
		for (int64_t j = 0; j < d; j++) sq += (row[j] - sum) * (row[j] - sum);
		mean[i] = (float)sum;
		rstd[i] = (float)(1 / sqrt(sq / (double)d + c->a[4].f));
		for (int64_t j = 0; j < d; j++) row[j] = (row[j] - mean[i]) * rstd[i] * w[j] + b[j];
	}
	unpack_f(c->a[5].t, px);
	if (c->a[6].t) unpack_f(c->a[6].t, mean);
	if (c->a[7].t) unpack_f(c->a[7].t, rstd);
	free(px), free(w), free(b), free(mean), free(rstd);
	return 0;
}
static int64_t LayerNorm_ws(const fcall *c) { return ws_of(c->a[0].t); }
FOP(LayerNorm) = {.check = LayerNorm_check, .run = LayerNorm_run, .workspace = LayerNorm_ws};

// result_check: a gradient that outputMask asks for.
static void result_check(ck *k, int i, const char *name, const ft *like, int dtype) {
	const farray *mask = k->c->a[7].a;
	if (k->rc || !mask->b[i - 8]) return;
	ft *t = ck_t(k, i, name, D_FLOAT);
	ck_same(k, like, "its input", t, name);
	ck_dtype(k, t, name, dtype);
}

static int LayerNormBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *dy = ck_t(&k, 0, "gradOut", D_FLOAT), *x = ck_t(&k, 1, "input", D_FLOAT);
	if (k.rc) return k.rc;
	const farray *shape = shape_check(&k, 2, x);
	ft *mean = ck_t(&k, 3, "mean", D_FLOAT), *rstd = ck_t(&k, 4, "rstd", D_FLOAT);
	ft *w = ck_opt(&k, 5, "weightOptional", D_FLOAT), *b = ck_opt(&k, 6, "biasOptional", D_FLOAT);
	ck_array(&k, 7, "outputMask", 3, 3);
	ck_same(&k, x, "input", dy, "gradOut");
	ck_alike(&k, x, "input", dy, "gradOut");
	statistic_check(&k, x, shape, mean, "mean");
	statistic_check(&k, x, shape, rstd, "rstd");
	ck_alike(&k, mean, "mean", rstd, "rstd");
	vector_check(&k, x, shape, w, "weightOptional");
	vector_check(&k, x, shape, b, "biasOptional");
	if (w && b) ck_alike(&k, w, "weightOptional", b, "biasOptional");
	if (k.rc) return k.rc;
	ft vec = {.nd = (int)shape->n};
	memcpy(vec.dims, shape->i, (size_t)shape->n * sizeof *shape->i);
	result_check(&k, 8, "gradInputOut", x, x->dtype);
	result_check(&k, 9, "gradWeightOut", &vec, w ? w->dtype : x->dtype);
	result_check(&k, 10, "gradBiasOut", &vec, w ? w->dtype : x->dtype);
	return k.rc;
}

static int LayerNormBackward_run(const fcall *c) {
	const ft *x = c->a[1].t;
	int64_t d = row_of(c->a[2].a), rows = d ? ft_numel(x) / d : 0;
	float *dy = pack_f(c->a[0].t), *px = pack_f(x), *mean = pack_f(c->a[3].t), *rstd = pack_f(c->a[4].t), *w = vector(c->a[5].t, d, 1);
	double *dw = room(d, 8), *db = room(d, 8);
	for (int64_t i = 0; i < rows; i++) {
		float *g = dy + i * d, *row = px + i * d;
		double sum = 0, dot = 0;
		for (int64_t j = 0; j < d; j++) {
			row[j] = (row[j] - mean[i]) * rstd[i];
			dw[j] += (double)g[j] * row[j];
			db[j] += g[j];
			g[j] *= w[j];
			sum += g[j];
			dot += (double)g[j] * row[j];
		}
		for (int64_t j = 0; j < d; j++) g[j] = (float)(rstd[i] * (g[j] - sum / (double)d - row[j] * dot / (double)d));
	}
	const bool *mask = c->a[7].a->b;
	if (mask[0]) unpack_f(c->a[8].t, dy);
	if (mask[1]) unpack_d(c->a[9].t, dw);
	if (mask[2]) unpack_d(c->a[10].t, db);
	free(dy), free(px), free(mean), free(rstd), free(w), free(dw), free(db);
	return 0;
}
static int64_t LayerNormBackward_ws(const fcall *c) { return 2 * ws_of(c->a[1].t); }
FOP(LayerNormBackward) = {.check = LayerNormBackward_check, .run = LayerNormBackward_run, .workspace = LayerNormBackward_ws};
