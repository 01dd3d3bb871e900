// Checks: what the first phase refuses, with the code and the kind of text that the real one has.
#include "op.h"

#include <stdarg.h>
#include <stdio.h>

int ck_fail(ck *k, int code, const char *format, ...) {
	if (k->rc) return k->rc;
	va_list l;
	va_start(l, format);
	vsnprintf(k->err, k->n, format, l);
	va_end(l);
	return k->rc = code;
}

static const char *soc_name(int soc) {
	static const char *const name[] = {"Ascend910", "Ascend910B", "Ascend910_93", "Ascend950"};
	return soc >= 0 && soc < 4 ? name[soc] : "unknown";
}

void ck_soc(ck *k, uint32_t socs) {
	if (!in_set(socs, k->c->soc)) ck_fail(k, ACLNN_NO_KERNEL, "%s: no binary kernel for %s", k->c->name, soc_name(k->c->soc));
}

static void list_dtypes(char *to, size_t n, uint32_t set) {
	size_t at = 0;
	for (int d = 0; d < 32; d++) {
		if (!in_set(set, d) || at + 12 > n) continue;
		at += (size_t)snprintf(to + at, n - at, "%sDT_%s", at ? "," : "", dtype_name(d));
	}
}

static void tensor_dtype(ck *k, const ft *t, const char *name, uint32_t dtypes) {
	if (k->rc || !t) return;
	if (t->dtype == DT_BF16 && k->c->soc == SOC_910) dtypes &= ~D(BF16);
	if (in_set(dtypes, t->dtype)) return;
	char list[200] = "";
	list_dtypes(list, sizeof list, dtypes);
	ck_fail(k, ACLNN_PARAM, "Tensor %s not implemented for DT_%s, should be in dtype support list [%s].", name, dtype_name(t->dtype), list);
}

ft *ck_opt(ck *k, int i, const char *name, uint32_t dtypes) {
	if (k->rc) return NULL;
	ft *t = k->c->a[i].t;
	tensor_dtype(k, t, name, dtypes);
	return t;
}

ft *ck_t(ck *k, int i, const char *name, uint32_t dtypes) {
	if (k->rc) return NULL;
	if (!k->c->a[i].t) ck_fail(k, ACLNN_NULLPTR, "Expected a proper Tensor but got null for argument %s.", name);
	return ck_opt(k, i, name, dtypes);
}

const fscalar *ck_s(ck *k, int i, const char *name) {
	if (k->rc) return NULL;
	const fscalar *s = k->c->a[i].s;
	if (!s) ck_fail(k, ACLNN_NULLPTR, "Expected a proper Scalar but got null for argument %s.", name);
	return s;
}

const farray *ck_array(ck *k, int i, const char *name, int64_t lo, int64_t hi) {
	if (k->rc) return NULL;
	const farray *a = k->c->a[i].a;
	if (!a) {
		ck_fail(k, ACLNN_NULLPTR, "Expected a proper array but got null for argument %s.", name);
		return NULL;
	}
	if (a->n < lo || a->n > hi) ck_fail(k, ACLNN_PARAM, "%s length %lld is illegal, should be in [%lld, %lld].", name, (long long)a->n,
		(long long)lo, (long long)hi);
	return a;
}

const flist *ck_list(ck *k, int i, const char *name, uint32_t dtypes) {
	if (k->rc) return NULL;
	const flist *l = k->c->a[i].l;
	if (!l) {
		ck_fail(k, ACLNN_NULLPTR, "Expected a proper TensorList but got null for argument %s.", name);
		return NULL;
	}
	if (l->n < 1) ck_fail(k, ACLNN_PARAM, "%s is an empty list.", name);
	for (int64_t j = 0; j < l->n && !k->rc; j++) {
		if (!l->t[j]) ck_fail(k, ACLNN_NULLPTR, "%s[%lld] is null.", name, (long long)j);
		tensor_dtype(k, l->t[j], name, dtypes);
	}
	return l;
}

void ck_dtype(ck *k, const ft *t, const char *name, int dtype) {
	if (k->rc || !t || t->dtype == dtype) return;
	ck_fail(k, ACLNN_PARAM, "%s has dtype DT_%s, expected DT_%s.", name, dtype_name(t->dtype), dtype_name(dtype));
}

void ck_alike(ck *k, const ft *a, const char *an, const ft *b, const char *bn) {
	if (k->rc || !a || !b || a->dtype == b->dtype) return;
	ck_fail(k, ACLNN_PARAM, "%s dtype DT_%s should be equal to %s dtype DT_%s.", bn, dtype_name(b->dtype), an, dtype_name(a->dtype));
}

void ck_rank(ck *k, const ft *t, const char *name, int lo, int hi) {
	if (k->rc || !t || (t->nd >= lo && t->nd <= hi)) return;
	ck_fail(k, ACLNN_PARAM, "%s has %d dims, expected %d to %d.", name, t->nd, lo, hi);
}

static void shape_text(char *to, size_t n, int nd, const int64_t *dims) {
	size_t at = (size_t)snprintf(to, n, "[");
	for (int i = 0; i < nd && at + 24 < n; i++) at += (size_t)snprintf(to + at, n - at, "%s%lld", i ? "," : "", (long long)dims[i]);
	snprintf(to + at, n - at, "]");
}

void ck_shape(ck *k, const ft *t, const char *name, int nd, const int64_t *dims) {
	if (k->rc || !t) return;
	bool same = t->nd == nd;
	for (int i = 0; same && i < nd; i++) same = t->dims[i] == dims[i];
	if (same) return;
	char has[200], want[200];
	shape_text(has, sizeof has, t->nd, t->dims);
	shape_text(want, sizeof want, nd, dims);
	ck_fail(k, ACLNN_PARAM, "Expected tensor for %s to have shape %s, but got %s.", name, want, has);
}

void ck_same(ck *k, const ft *a, const char *an, const ft *b, const char *bn) {
	if (k->rc || !a || !b || ft_same_shape(a, b)) return;
	char as[200], bs[200];
	shape_text(as, sizeof as, a->nd, a->dims);
	shape_text(bs, sizeof bs, b->nd, b->dims);
	ck_fail(k, ACLNN_PARAM, "Expected %s to have the shape of %s, %s, but got %s.", bn, an, as, bs);
}

void ck_image(ck *k, const ft *t, const char *name) {
	if (k->rc || !t) return;
	ck_rank(k, t, name, 3, 4);
	int want = t->nd == 3 ? FMT_NCL : FMT_NCHW;
	if (t->format != want) ck_fail(k, ACLNN_PARAM, "%s format is %d, only %s is supported for %d dims.", name, t->format, t->nd == 3 ? "NCL" : "NCHW", t->nd);
}

void ck_contiguous(ck *k, const ft *t, const char *name) {
	if (k->rc || !t || ft_contiguous(t)) return;
	ck_fail(k, ACLNN_PARAM, "%s must be contiguous.", name);
}

void ck_between(ck *k, const char *name, int64_t v, int64_t lo, int64_t hi) {
	if (k->rc || (v >= lo && v <= hi)) return;
	ck_fail(k, ACLNN_PARAM, "%s is %lld, should be in [%lld, %lld].", name, (long long)v, (long long)lo, (long long)hi);
}

int ck_dim(ck *k, const ft *t, const char *name, int64_t dim) {
	if (k->rc || !t) return 0;
	int64_t nd = t->nd ? t->nd : 1;
	ck_between(k, name, dim, -nd, nd - 1);
	return (int)(dim < 0 ? dim + nd : dim);
}

void ck_cube(ck *k, const ft *t, int64_t type) {
	if (k->rc || !t) return;
	ck_between(k, "cubeMathType", type, 0, 3);
	if (k->rc) return;
	if (type == 0 && t->dtype == DT_F32 && k->c->soc == SOC_910) ck_fail(k, ACLNN_PARAM, "cubeMathType 0 (KEEP_DTYPE) does not support DT_FLOAT on this chip.");
	if (type == 2 && t->dtype == DT_BF16) ck_fail(k, ACLNN_PARAM, "cubeMathType 2 (USE_FP16) does not support DT_BFLOAT16.");
	if (type == 3 && k->c->soc == SOC_910) ck_fail(k, ACLNN_PARAM, "cubeMathType 3 (USE_HF32) is not supported on this chip.");
}
