// Losses over classes. The gradient of the fused cross-entropy knows no smoothing, and its z-loss results mean nothing.
#include "op.h"

#include <math.h>

// target reads a row's class; -1: none, because it is ignored or out of range (counted).
static int64_t target_of(int64_t t, int64_t classes, int64_t ignore) {
	if (t == ignore) return -1;
	if (t >= 0 && t < classes) return t;
	fake_out_of_range++;
	return -1;
}

enum { NONE_, MEAN, SUM };

static void reduced_shape(ck *k, const ft *out, const char *name, int64_t reduction, int64_t rows) {
	if (k->rc) return;
	const int64_t want[1] = {reduction == NONE_ ? rows : 1};
	if (reduction != NONE_ && out->nd == 0) return;
	ck_shape(k, out, name, 1, want);
}

static int NLLLoss_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT), *t = ck_t(&k, 1, "target", D(I64) | D(I32) | D(U8)), *w = ck_t(&k, 2, "weight", D_FLOAT);
	ft *out = ck_t(&k, 5, "out", D_FLOAT), *total = ck_t(&k, 6, "totalWeightOut", D_FLOAT);
	ck_rank(&k, x, "self", 2, 2);
	ck_between(&k, "reduction", c->a[3].i, NONE_, SUM);
	if (k.rc) return k.rc;
	ck_shape(&k, t, "target", 1, x->dims);
	ck_shape(&k, w, "weight", 1, x->dims + 1);
	ck_alike(&k, x, "self", w, "weight");
	ck_alike(&k, x, "self", out, "out");
	ck_alike(&k, x, "self", total, "totalWeightOut");
	reduced_shape(&k, out, "out", c->a[3].i, x->dims[0]);
	reduced_shape(&k, total, "totalWeightOut", SUM, 1);
	return k.rc;
}

static int NLLLoss_run(const fcall *c) {
	int64_t rows = c->a[0].t->dims[0], classes = c->a[0].t->dims[1], *t = pack_i(c->a[1].t);
	double *x = pack_d(c->a[0].t), *w = pack_d(c->a[2].t), *loss = room(rows + 1, 8), *weight = room(rows + 1, 8);
	for (int64_t i = 0; i < rows; i++) {
		int64_t at = target_of(t[i], classes, c->a[4].i);
		if (at < 0) continue;
		weight[i] = w[at];
		loss[i] = -x[i * classes + at] * w[at];
	}
	double total = sum_parts(c, 0, weight, rows), sum = sum_parts(c, 1, loss, rows);
	if (c->a[3].i != NONE_) loss[0] = c->a[3].i == MEAN ? sum / total : sum;
	unpack_d(c->a[5].t, loss);
	unpack_d(c->a[6].t, &total);
	free(t), free(x), free(w), free(loss), free(weight);
	return 0;
}
FOP(NLLLoss) = {.check = NLLLoss_check, .run = NLLLoss_run, .nondeterministic = true};

static int NLLLossBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *g = ck_t(&k, 0, "gradOutput", D_FLOAT), *x = ck_t(&k, 1, "self", D_FLOAT), *t = ck_t(&k, 2, "target", D(I64) | D(I32) | D(U8));
	ft *w = ck_t(&k, 3, "weight", D_FLOAT), *total = ck_t(&k, 6, "totalWeight", D_FLOAT), *out = ck_t(&k, 7, "out", D_FLOAT);
	ck_rank(&k, x, "self", 2, 2);
	ck_between(&k, "reduction", c->a[4].i, NONE_, SUM);
	if (k.rc) return k.rc;
	ck_shape(&k, t, "target", 1, x->dims);
	ck_shape(&k, w, "weight", 1, x->dims + 1);
	ck_alike(&k, x, "self", g, "gradOutput");
	ck_alike(&k, x, "self", w, "weight");
	ck_alike(&k, x, "self", total, "totalWeight");
	ck_same(&k, x, "self", out, "out");
	ck_alike(&k, x, "self", out, "out");
	reduced_shape(&k, g, "gradOutput", c->a[4].i, x->dims[0]);
	return k.rc;
}

static int NLLLossBackward_run(const fcall *c) {
	int64_t rows = c->a[1].t->dims[0], classes = c->a[1].t->dims[1], *t = pack_i(c->a[2].t);
	double *g = pack_d(c->a[0].t), *w = pack_d(c->a[3].t), *total = pack_d(c->a[6].t), *dx = room(rows * classes, 8);
	for (int64_t i = 0; i < rows; i++) {
		int64_t at = target_of(t[i], classes, c->a[5].i);
		if (at >= 0) dx[i * classes + at] = -w[at] * g[c->a[4].i == NONE_ ? i : 0] / (c->a[4].i == MEAN ? total[0] : 1);
	}
	unpack_d(c->a[7].t, dx);
	free(t), free(g), free(w), free(total), free(dx);
	return 0;
}
FOP(NLLLossBackward) = {.check = NLLLossBackward_check, .run = NLLLossBackward_run};

static int64_t reduction_of(ck *k, const char *s) {
	static const char *const name[] = {"none", "mean", "sum"};
	if (k->rc) return 0;
	if (!s) ck_fail(k, ACLNN_NULLPTR, "Expected a string but got null for argument reductionOptional.");
	for (int i = 0; s && i < 3; i++) {
		if (!strcmp(s, name[i])) return i;
	}
	ck_fail(k, ACLNN_PARAM, "reductionOptional is %s, should be none, mean or sum.", s);
	return 0;
}

static int CrossEntropyLoss_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *x = ck_t(&k, 0, "input", D_FLOAT), *t = ck_t(&k, 1, "target", D(I64)), *w = ck_opt(&k, 2, "weightOptional", D(F32));
	ft *out = ck_t(&k, 8, "lossOut", D_FLOAT), *p = ck_t(&k, 9, "logProbOut", D_FLOAT);
	ck_t(&k, 10, "zlossOut", D_FLOAT);
	ck_t(&k, 11, "lseForZlossOut", D_FLOAT);
	int64_t reduction = reduction_of(&k, c->a[3].str);
	ck_rank(&k, x, "input", 2, 2);
	if (k.rc) return k.rc;
	ck_shape(&k, t, "target", 1, x->dims);
	ck_shape(&k, w, "weightOptional", 1, x->dims + 1);
	ck_alike(&k, x, "input", out, "lossOut");
	ck_same(&k, x, "input", p, "logProbOut");
	ck_alike(&k, x, "input", p, "logProbOut");
	reduced_shape(&k, out, "lossOut", reduction, x->dims[0]);
	if (!(c->a[5].f >= 0 && c->a[5].f <= 1)) ck_fail(&k, ACLNN_PARAM, "labelSmoothing is %g, should be in [0, 1].", c->a[5].f);
	if (c->a[6].f != 0 || c->a[7].i) ck_fail(&k, ACLNN_PARAM, "lseSquareScaleForZloss and returnZloss are not supported.");
	return k.rc;
}

static int CrossEntropyLoss_run(const fcall *c) {
	int64_t rows = c->a[0].t->dims[0], classes = c->a[0].t->dims[1], *t = pack_i(c->a[1].t);
	double *x = pack_d(c->a[0].t), *w = c->a[2].t ? pack_d(c->a[2].t) : NULL, *loss = room(rows + 1, 8), sum = 0, weight = 0, s = c->a[5].f;
	for (int64_t i = 0; i < rows; i++) {
		double *row = x + i * classes, m = -INFINITY, e = 0, all = 0;
		for (int64_t j = 0; j < classes; j++) m = fmax(m, row[j]);
		for (int64_t j = 0; j < classes; j++) e += exp(row[j] - m);
		for (int64_t j = 0; j < classes; j++) all -= (row[j] -= m + log(e)) * (w ? w[j] : 1);
		int64_t at = target_of(t[i], classes, c->a[4].i);
		if (at < 0) continue;
		loss[i] = (1 - s) * -row[at] * (w ? w[at] : 1) + s * all / (double)classes;
		sum += loss[i];
		weight += w ? w[at] : 1;
	}
	if (strcmp(c->a[3].str, "none")) loss[0] = strcmp(c->a[3].str, "mean") ? sum : sum / weight;
	unpack_d(c->a[8].t, loss);
	unpack_d(c->a[9].t, x);
	free(t), free(x), free(w), free(loss);
	return 0;
}
FOP(CrossEntropyLoss) = {.check = CrossEntropyLoss_check, .run = CrossEntropyLoss_run};

static int CrossEntropyLossGrad_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *g = ck_t(&k, 0, "gradLoss", D_FLOAT), *p = ck_t(&k, 1, "logProb", D_FLOAT), *t = ck_t(&k, 2, "target", D(I64));
	ft *w = ck_opt(&k, 3, "weightOptional", D(F32)), *out = ck_t(&k, 10, "out", D_FLOAT);
	int64_t reduction = reduction_of(&k, c->a[6].str);
	ck_rank(&k, p, "logProb", 2, 2);
	if (k.rc) return k.rc;
	ck_shape(&k, t, "target", 1, p->dims);
	ck_shape(&k, w, "weightOptional", 1, p->dims + 1);
	ck_alike(&k, p, "logProb", g, "gradLoss");
	ck_same(&k, p, "logProb", out, "out");
	ck_alike(&k, p, "logProb", out, "out");
	reduced_shape(&k, g, "gradLoss", reduction, p->dims[0]);
	if (c->a[8].f != 0) ck_fail(&k, ACLNN_PARAM, "labelSmoothing is %g, only 0 is supported.", c->a[8].f);
	if (c->a[4].t || c->a[5].t || c->a[9].f != 0) ck_fail(&k, ACLNN_PARAM,
		"gradZlossOptional, lseForZlossOptional and lseSquareScaleForZloss are not supported.");
	return k.rc;
}

static int CrossEntropyLossGrad_run(const fcall *c) {
	int64_t rows = c->a[1].t->dims[0], classes = c->a[1].t->dims[1], *t = pack_i(c->a[2].t);
	double *g = pack_d(c->a[0].t), *p = pack_d(c->a[1].t), *w = c->a[3].t ? pack_d(c->a[3].t) : NULL, weight = 0;
	const bool none = !strcmp(c->a[6].str, "none"), mean = !strcmp(c->a[6].str, "mean");
	for (int64_t i = 0; i < rows; i++) {
		if (t[i] != c->a[7].i && t[i] >= 0 && t[i] < classes) weight += w ? w[t[i]] : 1;
	}
	for (int64_t i = 0; i < rows; i++) {
		int64_t at = target_of(t[i], classes, c->a[7].i);
		double scale = at < 0 ? 0 : g[none ? i : 0] * (w ? w[at] : 1) / (mean ? weight : 1);
		for (int64_t j = 0; j < classes; j++) p[i * classes + j] = scale * (exp(p[i * classes + j]) - (j == at));
	}
	unpack_d(c->a[10].t, p);
	free(t), free(g), free(p), free(w);
	return 0;
}
FOP(CrossEntropyLossGrad) = {.check = CrossEntropyLossGrad_check, .run = CrossEntropyLossGrad_run};
