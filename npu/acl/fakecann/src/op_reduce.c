// Reductions. Sums are f64; the lists of axes must not be empty: whether that means all axes is not certain.
#include "op_ew.h"

lines lines_of(const ft *t, const int64_t *axes, int64_t n, bool keep) {
	lines l = {.view = *t, .outer = 1, .inner = 1};
	bool gone[FAKE_DIMS] = {false};
	for (int64_t i = 0; i < n; i++) {
		if (t->nd) gone[axes[i] < 0 ? axes[i] + t->nd : axes[i]] = true;
	}
	int at = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < t->nd; i++) {
			if (gone[i] != (pass == 1)) continue;
			l.view.dims[at] = t->dims[i];
			l.view.strides[at++] = t->strides[i];
			*(pass ? &l.inner : &l.outer) *= t->dims[i];
		}
	}
	for (int i = 0; i < t->nd; i++) {
		if (!gone[i]) l.dims[l.nd++] = t->dims[i];
		else if (keep) l.dims[l.nd++] = 1;
	}
	return l;
}

// axes_check checks the axes at argument i, and the shape of the result.
static void axes_check(ck *k, const ft *x, int i, const char *name, bool keep, const ft *y) {
	if (k->rc) return;
	const farray *a = ck_array(k, i, name, x->nd ? 1 : 0, FAKE_DIMS);
	unsigned seen = 0;
	for (int64_t j = 0; !k->rc && j < a->n; j++) {
		int d = ck_dim(k, x, name, a->i[j]);
		if (!k->rc && seen >> d & 1) ck_fail(k, ACLNN_PARAM, "%s names the dim %d twice.", name, d);
		seen |= 1u << d;
	}
	if (k->rc) return;
	lines l = lines_of(x, a->i, a->n, keep);
	ck_shape(k, y, "out", l.nd, l.dims);
}

// full refuses to look for the largest of nothing.
static void full(ck *k, const ft *x, const ft *y) {
	if (!k->rc && ft_numel(x) == 0 && ft_numel(y) > 0) ck_fail(k, ACLNN_PARAM, "self is empty: nothing in it is the largest.");
}

// line_sum adds a line; where the order is open, sixteen parts in any order.
static double line_sum(const fcall *c, uint64_t salt, const double *v, int64_t n) {
	double part[16] = {0};
	if (!open_order(c)) return sum_parts(c, 0, v, n);
	for (int64_t i = 0; i < n; i++) part[i * 16 / n] += v[i];
	return sum_parts(c, salt, part, 16);
}

static int total_check(const fcall *c, char *err, size_t n, bool mean) {
	CK(k);
	uint32_t in = mean ? D_FLOAT64 : D_MOST, out = mean ? D_FLOAT64 : D_MOST & ~D(BOOL);
	ft *x = ck_t(&k, 0, "self", in), *y = ck_t(&k, 4, "out", out);
	axes_check(&k, x, 1, mean ? "dim" : "dims", c->a[2].i, y);
	ck_dtype(&k, y, "out", (int)c->a[3].i);
	if (!k.rc) ck_castable(&k, x->dtype, y, "out");
	return k.rc;
}

static int total_run(const fcall *c, bool mean) {
	const ft *x = c->a[0].t, *y = c->a[4].t;
	lines l = lines_of(x, c->a[1].a->i, c->a[1].a->n, true);
	if (!is_float(x->dtype)) {
		int64_t *v = pack_i(&l.view), *o = room(l.outer, 8);
		for (int64_t i = 0; i < l.outer * l.inner; i++) o[i / l.inner] += v[i];
		unpack_i(y, o);
		free(v), free(o);
		return 0;
	}
	double *v = pack_d(&l.view), *o = room(l.outer, 8);
	for (int64_t i = 0; i < l.outer; i++) o[i] = line_sum(c, (uint64_t)i, v + i * l.inner, l.inner) / (mean ? (double)l.inner : 1);
	unpack_d(y, o);
	free(v), free(o);
	return 0;
}

static int64_t total_ws(const fcall *c) { return ws_of(c->a[4].t); }
static int ReduceSum_check(const fcall *c, char *err, size_t n) { return total_check(c, err, n, false); }
static int ReduceSum_run(const fcall *c) { return total_run(c, false); }
FOP(ReduceSum) = {.check = ReduceSum_check, .run = ReduceSum_run, .workspace = total_ws};
static int Mean_check(const fcall *c, char *err, size_t n) { return total_check(c, err, n, true); }
static int Mean_run(const fcall *c) { return total_run(c, true); }
FOP(Mean) = {.check = Mean_check, .run = Mean_run, .workspace = total_ws};

static int Amax_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *y = ck_t(&k, 3, "out", D_MOST);
	axes_check(&k, x, 1, "dim", c->a[2].i, y);
	ck_alike(&k, x, "self", y, "out");
	full(&k, x, y);
	return k.rc;
}

// peak finds the first largest of a line; a NaN is the largest.
static int64_t peak(const double *v, int64_t n) {
	int64_t at = 0;
	for (int64_t i = 1; i < n && !isnan(v[at]); i++) {
		if (v[i] > v[at] || isnan(v[i])) at = i;
	}
	return at;
}

// maxima writes the largest of each line to y, and where it stands to idx. 64-bit integers are compared as f64, exact to 2^53.
static void maxima(const lines *l, const ft *y, const ft *idx) {
	double *v = pack_d(&l->view), *o = room(l->outer, 8);
	int64_t *at = room(l->outer, 8);
	for (int64_t i = 0; i < l->outer; i++) {
		at[i] = peak(v + i * l->inner, l->inner);
		o[i] = v[i * l->inner + at[i]];
	}
	if (y) unpack_d(y, o);
	if (idx) unpack_i(idx, at);
	free(v), free(o), free(at);
}

static int Amax_run(const fcall *c) {
	lines l = lines_of(c->a[0].t, c->a[1].a->i, c->a[1].a->n, true);
	maxima(&l, c->a[3].t, NULL);
	return 0;
}
FOP(Amax) = {.check = Amax_check, .run = Amax_run};

// dim_check: a reduction over one axis.
static void dim_check(ck *k, const ft *x, int64_t dim, bool keep, const ft *y, const char *yn) {
	ck_dim(k, x, "dim", dim);
	if (k->rc) return;
	lines l = lines_of(x, &dim, 1, keep);
	ck_shape(k, y, yn, l.nd, l.dims);
}

static int MaxDim_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT | D_INT), *y = ck_t(&k, 3, "out", D_FLOAT | D_INT), *idx = ck_t(&k, 4, "indices", D_INDEX);
	dim_check(&k, x, c->a[1].i, c->a[2].i, y, "out");
	dim_check(&k, x, c->a[1].i, c->a[2].i, idx, "indices");
	ck_alike(&k, x, "self", y, "out");
	full(&k, x, y);
	return k.rc;
}
static int MaxDim_run(const fcall *c) {
	lines l = lines_of(c->a[0].t, &c->a[1].i, 1, true);
	maxima(&l, c->a[3].t, c->a[4].t);
	return 0;
}
FOP(MaxDim) = {.check = MaxDim_check, .run = MaxDim_run};

static int ArgMax_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT | D_INT), *y = ck_t(&k, 3, "out", D_INDEX);
	dim_check(&k, x, c->a[1].i, c->a[2].i, y, "out");
	full(&k, x, y);
	return k.rc;
}
static int ArgMax_run(const fcall *c) {
	lines l = lines_of(c->a[0].t, &c->a[1].i, 1, true);
	maxima(&l, NULL, c->a[3].t);
	return 0;
}
FOP(ArgMax) = {.check = ArgMax_check, .run = ArgMax_run};

static double line_norm(const fcall *c, uint64_t salt, double *v, int64_t n, double p) {
	if (isinf(p)) {
		double m = p > 0 ? 0 : INFINITY;
		for (int64_t i = 0; i < n; i++) m = isnan(v[i]) ? NAN : p > 0 ? fmax(m, fabs(v[i])) : fmin(m, fabs(v[i]));
		return m;
	}
	for (int64_t i = 0; i < n; i++) v[i] = p == 2 ? v[i] * v[i] : p == 1 ? fabs(v[i]) : p == 0 ? v[i] != 0 : pow(fabs(v[i]), p);
	double s = line_sum(c, salt, v, n);
	return p == 2 ? sqrt(s) : p == 1 || p == 0 ? s : pow(s, 1 / p);
}

static void norms(const fcall *c, const ft *y, double p) {
	lines l = lines_of(c->a[0].t, c->a[2].a->i, c->a[2].a->n, true);
	double *v = pack_d(&l.view), *o = room(l.outer, 8);
	for (int64_t i = 0; i < l.outer; i++) o[i] = line_norm(c, (uint64_t)i, v + i * l.inner, l.inner, p);
	unpack_d(y, o);
	free(v), free(o);
}

static int LinalgVectorNorm_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT), *y = ck_t(&k, 5, "out", D_FLOAT);
	ck_s(&k, 1, "ord");
	axes_check(&k, x, 2, "dims", c->a[3].i, y);
	ck_dtype(&k, y, "out", (int)c->a[4].i);
	return k.rc;
}
static int LinalgVectorNorm_run(const fcall *c) {
	norms(c, c->a[5].t, c->a[1].s->f);
	return 0;
}
static int64_t LinalgVectorNorm_ws(const fcall *c) { return ws_of(c->a[5].t); }
FOP(LinalgVectorNorm) = {.check = LinalgVectorNorm_check, .run = LinalgVectorNorm_run, .workspace = LinalgVectorNorm_ws, .nondeterministic = true};

static int Norm_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT), *y = ck_t(&k, 4, "out", D_FLOAT);
	const fscalar *p = ck_s(&k, 1, "pScalar");
	if (p && p->dtype != DT_F32) ck_fail(&k, ACLNN_PARAM, "pScalar dtype DT_%s, expected DT_FLOAT.", dtype_name(p->dtype));
	axes_check(&k, x, 2, "dim", c->a[3].i, y);
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int Norm_run(const fcall *c) {
	norms(c, c->a[4].t, c->a[1].s->f);
	return 0;
}
static int64_t Norm_ws(const fcall *c) { return ws_of(c->a[4].t); }
FOP(Norm) = {.check = Norm_check, .run = Norm_run, .workspace = Norm_ws, .nondeterministic = true};

static int Cumsum_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT | D_INT), *y = ck_t(&k, 3, "out", D_FLOAT | D_INT);
	ck_dim(&k, x, "dim", c->a[1].i);
	ck_same(&k, x, "self", y, "out");
	ck_dtype(&k, y, "out", (int)c->a[2].i);
	return k.rc;
}
static int Cumsum_run(const fcall *c) {
	lines l = lines_of(c->a[0].t, &c->a[1].i, 1, true), to = lines_of(c->a[3].t, &c->a[1].i, 1, true);
	double *v = pack_d(&l.view);
	for (int64_t i = 0; i < l.outer * l.inner; i++) {
		if (i % l.inner) v[i] += v[i - 1];
	}
	unpack_d(&to.view, v);
	free(v);
	return 0;
}
FOP(Cumsum) = {.check = Cumsum_check, .run = Cumsum_run};

static int LogSumExp_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT), *y = ck_t(&k, 3, "out", D_FLOAT);
	axes_check(&k, x, 1, "dim", c->a[2].i, y);
	ck_alike(&k, x, "self", y, "out");
	full(&k, x, y);
	return k.rc;
}
static int LogSumExp_run(const fcall *c) {
	lines l = lines_of(c->a[0].t, c->a[1].a->i, c->a[1].a->n, true);
	double *v = pack_d(&l.view), *o = room(l.outer, 8);
	for (int64_t i = 0; i < l.outer; i++) {
		const double *row = v + i * l.inner, m = row[peak(row, l.inner)], shift = isinf(m) ? 0 : m;
		double s = 0;
		for (int64_t j = 0; j < l.inner; j++) s += exp(row[j] - shift);
		o[i] = shift + log(s);
	}
	unpack_d(c->a[3].t, o);
	free(v), free(o);
	return 0;
}
static int64_t LogSumExp_ws(const fcall *c) { return ws_of(c->a[3].t); }
FOP(LogSumExp) = {.check = LogSumExp_check, .run = LogSumExp_run, .workspace = LogSumExp_ws};

static int truth_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT | D_INT | D(BOOL)), *y = ck_t(&k, 3, "out", D(BOOL));
	axes_check(&k, x, 1, "dim", c->a[2].i, y);
	return k.rc;
}
static int truth_run(const fcall *c, bool all) {
	lines l = lines_of(c->a[0].t, c->a[1].a->i, c->a[1].a->n, true);
	double *v = pack_d(&l.view), *o = room(l.outer, 8);
	for (int64_t i = 0; i < l.outer; i++) {
		bool t = all;
		for (int64_t j = 0; j < l.inner; j++) t = all ? t && v[i * l.inner + j] != 0 : t || v[i * l.inner + j] != 0;
		o[i] = t;
	}
	unpack_d(c->a[3].t, o);
	free(v), free(o);
	return 0;
}
static int All_run(const fcall *c) { return truth_run(c, true); }
static int Any_run(const fcall *c) { return truth_run(c, false); }
FOP(All) = {.check = truth_check, .run = All_run};
FOP(Any) = {.check = truth_check, .run = Any_run};
