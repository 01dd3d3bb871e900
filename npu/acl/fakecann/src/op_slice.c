// Slices, padding, ranges and triangles.
#include "op.h"

// cut narrows a dim of a view to start…end by step, with the rules of slices for negative and too large ends. False: nothing sensible.
static bool cut(ft *v, int d, int64_t start, int64_t end, int64_t step) {
	int64_t n = v->dims[d];
	if (step < 1) return false;
	if (start < 0) start += n;
	if (end < 0) end += n;
	if (start < 0) start = 0;
	if (end > n) end = n;
	if (start > end) return false;
	v->offset += start * v->strides[d];
	v->dims[d] = (end - start + step - 1) / step;
	v->strides[d] *= step;
	return true;
}

static int Slice_view(const fcall *c, ft *v) {
	*v = *c->a[0].t;
	int64_t d = c->a[1].i < 0 ? c->a[1].i + v->nd : c->a[1].i;
	return cut(v, (int)d, c->a[2].i, c->a[3].i, c->a[4].i);
}

#define D_SLICE (D_FLOAT | D_INT | D(BOOL))

static int Slice_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_SLICE), *y = ck_t(&k, 5, "out", D_SLICE), v;
	ck_rank(&k, x, "self", 1, FAKE_DIMS);
	ck_dim(&k, x, "dim", c->a[1].i);
	if (!k.rc && !Slice_view(c, &v)) ck_fail(&k, ACLNN_PARAM, "start, end and step do not describe a slice of self.");
	if (k.rc) return k.rc;
	ck_shape(&k, y, "out", v.nd, v.dims);
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int Slice_run(const fcall *c) {
	ft v;
	Slice_view(c, &v);
	copy_into(c->a[5].t, &v);
	return 0;
}
FOP(Slice) = {.check = Slice_check, .run = Slice_run};

static bool SliceV2_view(const fcall *c, ft *v) {
	*v = *c->a[0].t;
	for (int64_t i = 0; i < c->a[3].a->n; i++) {
		int64_t d = c->a[3].a->i[i];
		if (!cut(v, (int)(d < 0 ? d + v->nd : d), c->a[1].a->i[i], c->a[2].a->i[i], c->a[4].a->i[i])) return false;
	}
	return true;
}

static int SliceV2_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_SLICE), *y = ck_t(&k, 5, "out", D_SLICE), v;
	const farray *axes = ck_array(&k, 3, "axes", 1, FAKE_DIMS);
	if (k.rc) return k.rc;
	ck_array(&k, 1, "starts", axes->n, axes->n);
	ck_array(&k, 2, "ends", axes->n, axes->n);
	ck_array(&k, 4, "steps", axes->n, axes->n);
	for (int64_t i = 0; i < axes->n; i++) ck_dim(&k, x, "axes", axes->i[i]);
	if (!k.rc && !SliceV2_view(c, &v)) ck_fail(&k, ACLNN_PARAM, "starts, ends and steps do not describe a slice of self.");
	if (k.rc) return k.rc;
	ck_shape(&k, y, "out", v.nd, v.dims);
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int SliceV2_run(const fcall *c) {
	ft v;
	SliceV2_view(c, &v);
	copy_into(c->a[5].t, &v);
	return 0;
}
FOP(SliceV2) = {.check = SliceV2_check, .run = SliceV2_run};

// ConstantPadNd: pad counts from the last dim: before, after, before, after …
static int ConstantPadNd_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *y = ck_t(&k, 3, "out", D_MOST);
	ck_s(&k, 2, "value");
	if (k.rc) return k.rc;
	const farray *pad = ck_array(&k, 1, "pad", 2, 2 * x->nd);
	if (k.rc) return k.rc;
	if (pad->n % 2) ck_fail(&k, ACLNN_PARAM, "pad length %lld is odd.", (long long)pad->n);
	int64_t want[FAKE_DIMS];
	memcpy(want, x->dims, sizeof want);
	for (int64_t i = 0; i < pad->n && !k.rc; i++) {
		ck_between(&k, "pad", pad->i[i], 0, INT32_MAX);
		want[x->nd - 1 - i / 2] += pad->i[i];
	}
	ck_shape(&k, y, "out", x->nd, want);
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int ConstantPadNd_run(const fcall *c) {
	const ft *x = c->a[0].t, *y = c->a[3].t;
	ft v = *y;
	fill_with(y, c->a[2].s->f);
	for (int i = 0; i < x->nd; i++) v.dims[i] = x->dims[i];
	for (int64_t i = 0; i < c->a[1].a->n; i += 2) v.offset += c->a[1].a->i[i] * v.strides[x->nd - 1 - i / 2];
	copy_into(&v, x);
	return 0;
}
FOP(ConstantPadNd) = {.check = ConstantPadNd_check, .run = ConstantPadNd_run};

static int64_t arange_count(const fcall *c) {
	double v = (c->a[1].s->f - c->a[0].s->f) / c->a[2].s->f;
	int64_t n = (int64_t)v;
	return (double)n < v ? n + 1 : n;
}

static int Arange_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *y = ck_t(&k, 3, "out", D_FLOAT64 | D_INT);
	ck_s(&k, 0, "start");
	ck_s(&k, 1, "end");
	const fscalar *step = ck_s(&k, 2, "step");
	if (k.rc) return k.rc;
	if (step->f == 0 || (c->a[1].s->f - c->a[0].s->f) / step->f < 0) return ck_fail(&k, ACLNN_PARAM, "step %g does not lead from start to end.", step->f);
	const int64_t want[1] = {arange_count(c)};
	ck_shape(&k, y, "out", 1, want);
	return k.rc;
}
static int Arange_run(const fcall *c) {
	int64_t n = arange_count(c);
	double *v = room(n, sizeof *v);
	for (int64_t i = 0; i < n; i++) v[i] = c->a[0].s->f + (double)i * c->a[2].s->f;
	unpack_d(c->a[3].t, v);
	free(v);
	return 0;
}
FOP(Arange) = {.check = Arange_check, .run = Arange_run};

static int triangle_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *y = ck_t(&k, 2, "out", D_MOST);
	ck_rank(&k, x, "self", 2, FAKE_DIMS);
	ck_same(&k, x, "self", y, "out");
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}

static int triangle_run(const fcall *c, bool upper) {
	const ft *x = c->a[0].t;
	int64_t size = dtype_size(x->dtype), rows = x->dims[x->nd - 2], cols = x->dims[x->nd - 1], n = ft_numel(x);
	char *v = pack_raw(x);
	for (int64_t i = 0; i < n; i++) {
		int64_t ahead = i % cols - i / cols % rows;
		if (upper ? ahead < c->a[1].i : ahead > c->a[1].i) memset(v + i * size, 0, (size_t)size);
	}
	unpack_raw(c->a[2].t, v);
	free(v);
	return 0;
}
static int Triu_run(const fcall *c) { return triangle_run(c, true); }
static int Tril_run(const fcall *c) { return triangle_run(c, false); }
FOP(Triu) = {.check = triangle_check, .run = Triu_run};
FOP(Tril) = {.check = triangle_check, .run = Tril_run};
