// BatchNorm. saveInvstd is a lie on A2, A3 and 910: it holds the biased variance there, and 1/std on 950 only. Small tensors may be f32 beside a 16-bit x.
#include "op.h"

#include <math.h>

typedef struct plane { // x as [n][c][p]
	int64_t n, c, p;
} plane;

static plane plane_of(const ft *x) {
	plane s = {x->dims[0], x->dims[1], 1};
	for (int i = 2; i < x->nd; i++) s.p *= x->dims[i];
	return s;
}

// channel checks an f32 (or x-typed) vector with an element per channel.
static void channel(ck *k, const ft *x, const ft *t, const char *name) {
	if (k->rc || !t) return;
	ck_shape(k, t, name, 1, x->dims + 1);
	if (t->dtype != DT_F32) ck_alike(k, x, "input", t, name);
}

static void norm_input(ck *k, const ft *x) {
	if (k->rc) return;
	ck_rank(k, x, "input", 2, 4);
	if (x->nd > 2) ck_image(k, x, "input");
}

static float *vector(const ft *t, int64_t n, float other) { // other where t is NULL
	if (t) return pack_f(t);
	float *v = room(n, 4);
	for (int64_t i = 0; i < n; i++) v[i] = other;
	return v;
}

// moments returns the mean and the biased variance of a channel.
static void moments(const fcall *c, const plane *s, const float *x, int64_t ch, double *mean, double *var) {
	double *part = room(s->n, sizeof *part), count = (double)(s->n * s->p);
	for (int pass = 0; pass < 2; pass++) {
		for (int64_t i = 0; i < s->n; i++) {
			const float *row = x + (i * s->c + ch) * s->p;
			part[i] = 0;
			for (int64_t j = 0; j < s->p; j++) part[i] += pass ? (row[j] - *mean) * (row[j] - *mean) : row[j];
		}
		*(pass ? var : mean) = sum_parts(c, (uint64_t)(2 * ch + pass), part, s->n) / count;
	}
	free(part);
}

static double saved(const fcall *c, double var, double eps) { return c->soc == SOC_950 ? 1 / sqrt(var + eps) : var; }
static double inverse(const fcall *c, double kept, double eps) { return c->soc == SOC_950 ? kept : 1 / sqrt(kept + eps); }

static int BatchNorm_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "input", D_FLOAT), *w = ck_opt(&k, 1, "weight", D_FLOAT), *b = ck_opt(&k, 2, "bias", D_FLOAT), *y = ck_t(&k, 8, "output", D_FLOAT);
	bool train = c->a[5].i;
	ft *rm = ck_t(&k, 3, "runningMean", D_FLOAT), *rv = ck_t(&k, 4, "runningVar", D_FLOAT);
	ft *sm = train ? ck_t(&k, 9, "saveMean", D_FLOAT) : NULL, *sv = train ? ck_t(&k, 10, "saveInvstd", D_FLOAT) : NULL;
	norm_input(&k, x);
	if (k.rc) return k.rc;
	ck_same(&k, x, "input", y, "output");
	ck_alike(&k, x, "input", y, "output");
	if (y->nd > 2) ck_image(&k, y, "output");
	const struct {
		ft *t;
		const char *name;
	} small[] = {{w, "weight"}, {b, "bias"}, {rm, "runningMean"}, {rv, "runningVar"}, {sm, "saveMean"}, {sv, "saveInvstd"}};
	for (int i = 0; i < 6; i++) channel(&k, x, small[i].t, small[i].name);
	for (int i = 4; i < 6; i++) {
		if (small[i].t) ck_dtype(&k, small[i].t, small[i].name, DT_F32);
	}
	return k.rc;
}

static int BatchNorm_run(const fcall *c) {
	const ft *x = c->a[0].t;
	plane s = plane_of(x);
	bool train = c->a[5].i;
	double m = c->a[6].f, eps = c->a[7].f, count = (double)(s.n * s.p);
	float *px = pack_f(x), *w = vector(c->a[1].t, s.c, 1), *b = vector(c->a[2].t, s.c, 0), *rm = pack_f(c->a[3].t), *rv = pack_f(c->a[4].t);
	double *keep = room(2 * s.c, sizeof *keep);
	for (int64_t ch = 0; ch < s.c; ch++) {
		double mean = rm[ch], var = rv[ch];
		if (train) {
			moments(c, &s, px, ch, &mean, &var);
			double unbiased = count > 1 ? count / (count - 1) : c->soc == SOC_950 ? NAN : 0;
			rm[ch] = (float)((1 - m) * rm[ch] + m * mean);
			rv[ch] = (float)((1 - m) * rv[ch] + m * var * unbiased);
			keep[ch] = mean;
			keep[s.c + ch] = saved(c, var, eps);
		}
		const float scale = (float)(w[ch] / sqrt(var + eps)), mu = (float)mean, shift = b[ch];
		for (int64_t i = 0; i < s.n; i++) {
			float *row = px + (i * s.c + ch) * s.p;
			for (int64_t j = 0; j < s.p; j++) row[j] = (row[j] - mu) * scale + shift;
		}
	}
	unpack_f(c->a[8].t, px);
	if (train) {
		unpack_f(c->a[3].t, rm);
		unpack_f(c->a[4].t, rv);
		unpack_d(c->a[9].t, keep);
		unpack_d(c->a[10].t, keep + s.c);
	}
	free(px), free(w), free(b), free(rm), free(rv), free(keep);
	return 0;
}

static int64_t BatchNorm_ws(const fcall *c) { return ws_of(c->a[3].t); }
FOP(BatchNorm) = {.check = BatchNorm_check, .run = BatchNorm_run, .workspace = BatchNorm_ws, .nondeterministic = true};

static int BatchNormBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *dy = ck_t(&k, 0, "gradOut", D_FLOAT), *x = ck_t(&k, 1, "input", D_FLOAT);
	bool train = c->a[7].i;
	const farray *mask = ck_array(&k, 9, "outputMask", 3, 3);
	norm_input(&k, x);
	if (k.rc) return k.rc;
	ck_same(&k, x, "input", dy, "gradOut");
	ck_alike(&k, x, "input", dy, "gradOut");
	channel(&k, x, ck_opt(&k, 2, "weight", D_FLOAT), "weight");
	for (int i = 3; i < 5; i++) channel(&k, x, train ? ck_opt(&k, i, "running", D_FLOAT) : ck_t(&k, i, i == 3 ? "runningMean" : "runningVar",
		D_FLOAT), "running");
	for (int i = 5; i < 7; i++) {
		const char *name = i == 5 ? "saveMean" : "saveInvstd";
		ft *t = train ? ck_t(&k, i, name, D_FLOAT) : ck_opt(&k, i, name, D_FLOAT);
		channel(&k, x, t, name);
		ck_dtype(&k, t, name, DT_F32);
	}
	if (k.rc) return k.rc;
	ft *dx = mask->b[0] ? ck_t(&k, 10, "gradInput", D_FLOAT) : NULL;
	ck_same(&k, x, "input", dx, "gradInput");
	ck_alike(&k, x, "input", dx, "gradInput");
	if (mask->b[1]) channel(&k, x, ck_t(&k, 11, "gradWeight", D_FLOAT), "gradWeight");
	if (mask->b[2]) channel(&k, x, ck_t(&k, 12, "gradBias", D_FLOAT), "gradBias");
	return k.rc;
}

// channel_grads returns Σ dy and Σ dy·(x-mean) of a channel.
static void channel_grads(const fcall *c, const plane *s, const float *dy, const float *x, int64_t ch, double mean, double *sum, double *dot) {
	double *part = room(2 * s->n, sizeof *part);
	for (int64_t i = 0; i < s->n; i++) {
		int64_t at = (i * s->c + ch) * s->p;
		for (int64_t j = at; j < at + s->p; j++) {
			part[i] += dy[j];
			part[s->n + i] += dy[j] * (x[j] - mean);
		}
	}
	*sum = sum_parts(c, (uint64_t)(2 * ch), part, s->n);
	*dot = sum_parts(c, (uint64_t)(2 * ch + 1), part + s->n, s->n);
	free(part);
}

static int BatchNormBackward_run(const fcall *c) {
	plane s = plane_of(c->a[1].t);
	const bool train = c->a[7].i, *mask = c->a[9].a->b;
	double eps = c->a[8].f, count = (double)(s.n * s.p);
	float *dy = pack_f(c->a[0].t), *x = pack_f(c->a[1].t), *w = vector(c->a[2].t, s.c, 1);
	float *mean = pack_f(c->a[train ? 5 : 3].t), *kept = pack_f(c->a[train ? 6 : 4].t);
	double *dw = room(2 * s.c, sizeof *dw);
	for (int64_t ch = 0; ch < s.c; ch++) {
		double sum, dot, r = train ? inverse(c, kept[ch], eps) : 1 / sqrt(kept[ch] + eps);
		channel_grads(c, &s, dy, x, ch, mean[ch], &sum, &dot);
		dw[ch] = dot * r;
		dw[s.c + ch] = sum;
		const float a = (float)(w[ch] * r), b = train ? (float)(sum / count) : 0, d = train ? (float)(dot * r * r / count) : 0, mu = mean[ch];
		for (int64_t i = 0; i < s.n; i++) {
			int64_t at = (i * s.c + ch) * s.p;
			for (int64_t j = at; j < at + s.p; j++) dy[j] = a * (dy[j] - b - (x[j] - mu) * d);
		}
	}
	if (mask[0]) unpack_f(c->a[10].t, dy);
	if (mask[1]) unpack_d(c->a[11].t, dw);
	if (mask[2]) unpack_d(c->a[12].t, dw + s.c);
	free(dy), free(x), free(w), free(mean), free(kept), free(dw);
	return 0;
}

static int64_t BatchNormBackward_ws(const fcall *c) { return ws_of(c->a[5].t); }
FOP(BatchNormBackward) = {.check = BatchNormBackward_check, .run = BatchNormBackward_run, .workspace = BatchNormBackward_ws, .nondeterministic = true};

// The four parts of a BatchNorm over several devices.
static int BatchNormStats_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "input", D_FLOAT), *mean = ck_t(&k, 2, "mean", D(F32)), *r = ck_t(&k, 3, "invstd", D(F32));
	norm_input(&k, x);
	channel(&k, x, mean, "mean");
	channel(&k, x, r, "invstd");
	return k.rc;
}

static int BatchNormStats_run(const fcall *c) {
	plane s = plane_of(c->a[0].t);
	float *x = pack_f(c->a[0].t);
	double *v = room(2 * s.c, sizeof *v);
	for (int64_t ch = 0; ch < s.c; ch++) {
		double var;
		moments(c, &s, x, ch, v + ch, &var);
		v[s.c + ch] = 1 / sqrt(var + c->a[1].f);
	}
	unpack_d(c->a[2].t, v);
	unpack_d(c->a[3].t, v + s.c);
	free(x), free(v);
	return 0;
}
FOP(BatchNormStats) = {.check = BatchNormStats_check, .run = BatchNormStats_run};

static int BatchNormElemt_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "input", D_FLOAT), *y = ck_t(&k, 6, "output", D_FLOAT);
	norm_input(&k, x);
	ck_same(&k, x, "input", y, "output");
	ck_alike(&k, x, "input", y, "output");
	channel(&k, x, ck_opt(&k, 1, "weight", D_FLOAT), "weight");
	channel(&k, x, ck_opt(&k, 2, "bias", D_FLOAT), "bias");
	channel(&k, x, ck_t(&k, 3, "mean", D_FLOAT), "mean");
	channel(&k, x, ck_t(&k, 4, "invstd", D_FLOAT), "invstd");
	return k.rc;
}

static int BatchNormElemt_run(const fcall *c) {
	plane s = plane_of(c->a[0].t);
	float *x = pack_f(c->a[0].t), *w = vector(c->a[1].t, s.c, 1), *b = vector(c->a[2].t, s.c, 0), *mean = pack_f(c->a[3].t), *r = pack_f(c->a[4].t);
	for (int64_t i = 0; i < s.n * s.c * s.p; i++) {
		int64_t ch = i / s.p % s.c;
		x[i] = (x[i] - mean[ch]) * (r[ch] * w[ch]) + b[ch];
	}
	unpack_f(c->a[6].t, x);
	free(x), free(w), free(b), free(mean), free(r);
	return 0;
}
FOP(BatchNormElemt) = {.check = BatchNormElemt_check, .run = BatchNormElemt_run};

static int BatchNormReduceBackward_check(const fcall *c, char *err, size_t n) {
	static const char *const name[] = {"sumDy", "sumDyXmu", "gradWeight", "gradBias"};
	CK(k);
	ft *dy = ck_t(&k, 0, "gradOut", D_FLOAT), *x = ck_t(&k, 1, "input", D_FLOAT);
	norm_input(&k, x);
	ck_same(&k, x, "input", dy, "gradOut");
	ck_alike(&k, x, "input", dy, "gradOut");
	channel(&k, x, ck_t(&k, 2, "mean", D_FLOAT), "mean");
	channel(&k, x, ck_t(&k, 3, "invstd", D_FLOAT), "invstd");
	channel(&k, x, ck_opt(&k, 4, "weight", D_FLOAT), "weight");
	for (int i = 0; i < 4 && !k.rc; i++) {
		if (c->a[5 + (i < 2 ? 0 : i - 1)].i) channel(&k, x, ck_t(&k, 8 + i, name[i], D_FLOAT), name[i]);
	}
	return k.rc;
}

static int BatchNormReduceBackward_run(const fcall *c) {
	plane s = plane_of(c->a[1].t);
	float *dy = pack_f(c->a[0].t), *x = pack_f(c->a[1].t), *mean = pack_f(c->a[2].t), *r = pack_f(c->a[3].t);
	double *v = room(3 * s.c, sizeof *v);
	for (int64_t ch = 0; ch < s.c; ch++) {
		channel_grads(c, &s, dy, x, ch, mean[ch], v + ch, v + s.c + ch);
		v[2 * s.c + ch] = v[s.c + ch] * r[ch];
	}
	if (c->a[5].i) unpack_d(c->a[8].t, v), unpack_d(c->a[9].t, v + s.c);
	if (c->a[6].i) unpack_d(c->a[10].t, v + 2 * s.c);
	if (c->a[7].i) unpack_d(c->a[11].t, v);
	free(dy), free(x), free(mean), free(r), free(v);
	return 0;
}
FOP(BatchNormReduceBackward) = {.check = BatchNormReduceBackward_check, .run = BatchNormReduceBackward_run};

static int BatchNormElemtBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *dy = ck_t(&k, 0, "gradOut", D_FLOAT), *x = ck_t(&k, 1, "input", D_FLOAT), *dx = ck_t(&k, 8, "gradInput", D_FLOAT);
	norm_input(&k, x);
	ck_same(&k, x, "input", dy, "gradOut");
	ck_alike(&k, x, "input", dy, "gradOut");
	ck_same(&k, x, "input", dx, "gradInput");
	ck_alike(&k, x, "input", dx, "gradInput");
	channel(&k, x, ck_t(&k, 2, "mean", D_FLOAT), "mean");
	channel(&k, x, ck_t(&k, 3, "invstd", D_FLOAT), "invstd");
	channel(&k, x, ck_opt(&k, 4, "weight", D_FLOAT), "weight");
	channel(&k, x, ck_t(&k, 5, "sumDy", D_FLOAT), "sumDy");
	channel(&k, x, ck_t(&k, 6, "sumDyXmu", D_FLOAT), "sumDyXmu");
	ck_t(&k, 7, "counter", D(I32));
	return k.rc;
}

static int BatchNormElemtBackward_run(const fcall *c) {
	plane s = plane_of(c->a[1].t);
	float *dy = pack_f(c->a[0].t), *x = pack_f(c->a[1].t), *mean = pack_f(c->a[2].t), *r = pack_f(c->a[3].t), *w = vector(c->a[4].t, s.c, 1);
	float *sum = pack_f(c->a[5].t), *dot = pack_f(c->a[6].t);
	int64_t *counter = pack_i(c->a[7].t), count = 0;
	for (int64_t i = 0; i < ft_numel(c->a[7].t); i++) count += counter[i];
	for (int64_t i = 0; i < s.n * s.c * s.p; i++) {
		int64_t ch = i / s.p % s.c;
		dy[i] = w[ch] * r[ch] * (dy[i] - sum[ch] / (float)count - (x[i] - mean[ch]) * r[ch] * r[ch] * dot[ch] / (float)count);
	}
	unpack_f(c->a[8].t, dy);
	free(dy), free(x), free(mean), free(r), free(w), free(sum), free(dot), free(counter);
	return 0;
}
FOP(BatchNormElemtBackward) = {.check = BatchNormElemtBackward_check, .run = BatchNormElemtBackward_run};
