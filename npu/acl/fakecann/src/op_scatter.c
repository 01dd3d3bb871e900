// Writes by index. An index out of range is left out here, and counted. Where the library leaves the order of sums open, so does the fake.
#include "op.h"

int index_shape(ck *k, const ft *self, const flist *l, int64_t *dims); // op_gather.c

// order_of gives the order in which an operator adds: as the rows stand, or shuffled.
static int64_t *order_of(const fcall *c, int64_t n) {
	int64_t *v = room(n, 8);
	uint64_t state = c->seed;
	for (int64_t i = 0; i < n; i++) v[i] = i;
	if (open_order(c)) shuffle(&state, v, n);
	return v;
}

// sum adds as f32 cores do where the order is open.
static double sum(const fcall *c, double a, double b) { return open_order(c) ? (double)((float)a + (float)b) : a + b; }

static int elements_check(ck *k, const ft *x, int64_t dim, const ft *index, const ft *src, const ft *y) {
	int d = ck_dim(k, x, "dim", dim);
	if (k->rc) return k->rc;
	ck_rank(k, index, "index", x->nd, x->nd);
	ck_rank(k, src, "src", x->nd, x->nd);
	ck_alike(k, x, "self", src, "src");
	for (int i = 0; i < x->nd && !k->rc; i++) {
		if ((i != d && index->dims[i] > x->dims[i]) || index->dims[i] > src->dims[i]) ck_fail(k, ACLNN_PARAM, "dim %d of index is too large.", i);
	}
	ck_same(k, x, "self", y, "out");
	ck_alike(k, x, "self", y, "out");
	return k->rc;
}

// elements applies src to out by index along dim: 0 replaces, 1 adds, 2 multiplies.
static void elements(const ft *out, int64_t dim, const ft *index, const ft *src, int64_t how) {
	int d = (int)(dim < 0 ? dim + out->nd : dim);
	int64_t n = ft_numel(index), *id = pack_i(index);
	ft plain = *out, from = *index, to = *index;
	double *v = pack_d(out);
	plain.offset = 0;
	for (int i = out->nd - 1, s = 1; i >= 0; s *= (int)out->dims[i--]) plain.strides[i] = s;
	memcpy(to.strides, plain.strides, sizeof to.strides);
	memcpy(from.strides, src->strides, sizeof from.strides);
	to.strides[d] = to.offset = 0;
	from.offset = src->offset;
	for (int64_t i = 0; i < n; i++) {
		if (id[i] < 0 || id[i] >= out->dims[d]) {
			fake_out_of_range++;
			continue;
		}
		double *at = v + ft_at(&to, i) + id[i] * plain.strides[d], s = value_load(src->base, src->dtype, ft_at(&from, i));
		*at = how == 0 ? s : how == 1 ? *at + s : *at * s;
	}
	unpack_d(out, v);
	free(id), free(v);
}

static int ScatterAdd_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *x = ck_t(&k, 0, "self", D_MOST), *index = ck_t(&k, 2, "index", D_INDEX), *src = ck_t(&k, 3, "src", D_MOST), *y = ck_t(&k, 4, "out", D_MOST);
	return elements_check(&k, x, c->a[1].i, index, src, y);
}
static int ScatterAdd_run(const fcall *c) {
	copy_into(c->a[4].t, c->a[0].t);
	elements(c->a[4].t, c->a[1].i, c->a[2].t, c->a[3].t, 1);
	return 0;
}
FOP(ScatterAdd) = {.check = ScatterAdd_check, .run = ScatterAdd_run};

static int InplaceScatter_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *x = ck_t(&k, 0, "selfRef", D_MOST), *index = ck_t(&k, 2, "index", D_INDEX), *src = ck_t(&k, 3, "src", D_MOST);
	ck_between(&k, "reduce", c->a[4].i, 0, 2);
	return elements_check(&k, x, c->a[1].i, index, src, x);
}
static int InplaceScatter_run(const fcall *c) {
	elements(c->a[0].t, c->a[1].i, c->a[2].t, c->a[3].t, c->a[4].i);
	return 0;
}
FOP(InplaceScatter) = {.check = InplaceScatter_check, .run = InplaceScatter_run};

static int IndexAdd_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	ft *x = ck_t(&k, 0, "self", D_MOST), *index = ck_t(&k, 2, "index", D_INDEX), *src = ck_t(&k, 3, "source", D_MOST), *y = ck_t(&k, 5, "out", D_MOST);
	ck_s(&k, 4, "alpha");
	int d = ck_dim(&k, x, "dim", c->a[1].i);
	ck_rank(&k, index, "index", 1, 1);
	if (k.rc) return k.rc;
	int64_t want[FAKE_DIMS];
	memcpy(want, x->dims, sizeof want);
	want[d] = index->dims[0];
	ck_shape(&k, src, "source", x->nd, want);
	ck_alike(&k, x, "self", src, "source");
	ck_same(&k, x, "self", y, "out");
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int IndexAdd_run(const fcall *c) {
	const ft *y = c->a[5].t;
	copy_into(y, c->a[0].t);
	const int64_t dim = c->a[1].i;
	lines l = lines_of(y, &dim, 1, true), ls = lines_of(c->a[3].t, &dim, 1, true);
	double *v = pack_d(&l.view), *s = pack_d(&ls.view);
	int64_t *id = pack_i(c->a[2].t), *order = order_of(c, ls.inner);
	for (int64_t i = 0; i < ls.inner; i++) {
		int64_t j = order[i];
		if (id[j] < 0 || id[j] >= l.inner) {
			fake_out_of_range++;
			continue;
		}
		for (int64_t o = 0; o < l.outer; o++) v[o * l.inner + id[j]] = sum(c, v[o * l.inner + id[j]], c->a[4].s->f * s[o * ls.inner + j]);
	}
	unpack_d(&l.view, v);
	free(v), free(s), free(id), free(order);
	return 0;
}
FOP(IndexAdd) = {.check = IndexAdd_check, .run = IndexAdd_run, .nondeterministic = true};

static int IndexPutImpl_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "selfRef", D_MOST), *v = ck_t(&k, 2, "values", D_MOST);
	const flist *l = ck_list(&k, 1, "indices", D_INDEX);
	int64_t dims[FAKE_DIMS + 8], both[FAKE_DIMS + 8];
	int nd = index_shape(&k, x, l, dims), bd = 0;
	if (k.rc) return k.rc;
	ck_alike(&k, x, "selfRef", v, "values");
	bool fits = broadcast(v->dims, v->nd, dims, nd, both, &bd) && bd == nd && !memcmp(both, dims, (size_t)nd * sizeof *dims);
	if (!fits) ck_fail(&k, ACLNN_PARAM, "values can not broadcast to the shape that indices give.");
	return k.rc;
}
static int IndexPutImpl_run(const fcall *c) {
	const ft *x = c->a[0].t, *values = c->a[2].t;
	const flist *l = c->a[1].l;
	ck k = {c, NULL, 0, 0};
	ft shape = {.nd = 0};
	shape.nd = index_shape(&k, x, l, shape.dims);
	int lead = shape.nd - (x->nd - (int)l->n);
	int64_t rows = 1, inner = 1, **id = room(l->n, sizeof *id);
	for (int i = 0; i < shape.nd; i++) *(i < lead ? &rows : &inner) *= shape.dims[i];
	for (int64_t j = 0; j < l->n; j++) {
		ft v = *l->t[j];
		v.nd = lead;
		for (int q = 0; q < lead; q++) {
			int p = q - (lead - l->t[j]->nd);
			v.dims[q] = shape.dims[q];
			v.strides[q] = p < 0 || l->t[j]->dims[p] == 1 ? 0 : l->t[j]->strides[p];
		}
		id[j] = pack_i(&v);
	}
	ft spread = *values;
	spread.nd = shape.nd;
	for (int q = 0; q < shape.nd; q++) {
		int p = q - (shape.nd - values->nd);
		spread.dims[q] = shape.dims[q];
		spread.strides[q] = p < 0 || values->dims[p] == 1 ? 0 : values->strides[p];
	}
	double *v = pack_d(x), *s = pack_d(&spread);
	int64_t *order = order_of(c, rows);
	for (int64_t i = 0; i < rows; i++) {
		int64_t r = order[i], at = 0;
		bool bad = false;
		for (int64_t j = 0; j < l->n; j++) {
			bad |= id[j][r] < 0 || id[j][r] >= x->dims[j];
			at = bad ? 0 : at * x->dims[j] + id[j][r];
		}
		if (bad) {
			fake_out_of_range++;
			continue;
		}
		for (int64_t q = 0; q < inner; q++) v[at * inner + q] = c->a[3].i ? sum(c, v[at * inner + q], s[r * inner + q]) : s[r * inner + q];
	}
	unpack_d(x, v);
	for (int64_t j = 0; j < l->n; j++) free(id[j]);
	free(id), free(v), free(s), free(order);
	return 0;
}
FOP(IndexPutImpl) = {.check = IndexPutImpl_check, .run = IndexPutImpl_run, .not_repeatable = true, .nondeterministic = true};

static int ScatterNdUpdate_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "varRef", D_MOST), *index = ck_t(&k, 1, "indices", D_INDEX), *u = ck_t(&k, 2, "updates", D_MOST);
	ck_rank(&k, x, "varRef", 1, FAKE_DIMS);
	ck_rank(&k, index, "indices", 1, FAKE_DIMS);
	if (k.rc) return k.rc;
	int64_t depth = index->dims[index->nd - 1], want[2 * FAKE_DIMS];
	int nd = 0;
	ck_between(&k, "the last dim of indices", depth, 1, x->nd);
	if (k.rc) return k.rc;
	for (int i = 0; i < index->nd - 1; i++) want[nd++] = index->dims[i];
	for (int i = (int)depth; i < x->nd; i++) want[nd++] = x->dims[i];
	ck_shape(&k, u, "updates", nd, want);
	ck_alike(&k, x, "varRef", u, "updates");
	return k.rc;
}
static int ScatterNdUpdate_run(const fcall *c) {
	const ft *x = c->a[0].t, *index = c->a[1].t, *u = c->a[2].t;
	int64_t depth = index->dims[index->nd - 1], rows = ft_numel(index) / depth, *id = pack_i(index);
	ft lead = *u, row = *x, from = *u;
	lead.nd = index->nd - 1;
	row.nd = from.nd = x->nd - (int)depth;
	for (int i = 0; i < row.nd; i++) {
		row.dims[i] = from.dims[i] = x->dims[depth + i];
		row.strides[i] = x->strides[depth + i];
		from.strides[i] = u->strides[lead.nd + i];
	}
	for (int64_t i = 0; i < rows; i++) {
		bool bad = false;
		ft to = row;
		for (int64_t j = 0; j < depth; j++) {
			bad |= id[i * depth + j] < 0 || id[i * depth + j] >= x->dims[j];
			to.offset += bad ? 0 : id[i * depth + j] * x->strides[j];
		}
		from.offset = ft_at(&lead, i);
		if (bad) fake_out_of_range++;
		else copy_into(&to, &from);
	}
	free(id);
	return 0;
}
FOP(ScatterNdUpdate) = {.check = ScatterNdUpdate_check, .run = ScatterNdUpdate_run};

// InplaceScatterUpdate: batch b of data gets updates from position indices[b] of the axis on.
static int InplaceScatterUpdate_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "data", D_MOST), *index = ck_t(&k, 1, "indices", D_INDEX), *u = ck_t(&k, 2, "updates", D_MOST);
	ck_rank(&k, x, "data", 2, FAKE_DIMS);
	int d = ck_dim(&k, x, "axis", c->a[3].i);
	if (k.rc) return k.rc;
	ck_rank(&k, u, "updates", x->nd, x->nd);
	ck_alike(&k, x, "data", u, "updates");
	ck_between(&k, "axis", d, 1, x->nd - 1);
	ck_shape(&k, index, "indices", 1, u->dims);
	for (int i = 0; i < x->nd && !k.rc; i++) {
		if (i == d || i == 0 ? u->dims[i] > x->dims[i] : u->dims[i] != x->dims[i]) ck_fail(&k, ACLNN_PARAM, "dim %d of updates does not fit data.", i);
	}
	return k.rc;
}
static int InplaceScatterUpdate_run(const fcall *c) {
	const ft *x = c->a[0].t, *u = c->a[2].t;
	int d = (int)(c->a[3].i < 0 ? c->a[3].i + x->nd : c->a[3].i);
	int64_t *id = pack_i(c->a[1].t);
	for (int64_t b = 0; b < u->dims[0]; b++) {
		ft to = *x, from = *u;
		memcpy(to.dims, u->dims, sizeof to.dims);
		to.dims[0] = from.dims[0] = 1;
		from.offset += b * u->strides[0];
		if (id[b] < 0 || id[b] > x->dims[d] - u->dims[d]) {
			fake_out_of_range++;
			continue;
		}
		to.offset += b * x->strides[0] + id[b] * x->strides[d];
		copy_into(&to, &from);
	}
	free(id);
	return 0;
}
FOP(InplaceScatterUpdate) = {.check = InplaceScatterUpdate_check, .run = InplaceScatterUpdate_run};

static int EmbeddingDenseBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *g = ck_t(&k, 0, "grad", D_FLOAT), *ids = ck_t(&k, 1, "indices", D_INDEX), *y = ck_t(&k, 5, "out", D_FLOAT);
	ck_rank(&k, g, "grad", 1, FAKE_DIMS);
	if (k.rc) return k.rc;
	const int64_t want[2] = {c->a[2].i, g->dims[g->nd - 1]};
	ck_rank(&k, g, "grad", ids->nd + 1, ids->nd + 1);
	for (int i = 0; i < ids->nd && !k.rc; i++) {
		if (ids->dims[i] != g->dims[i]) ck_fail(&k, ACLNN_PARAM, "dim %d of indices and grad differ.", i);
	}
	ck_between(&k, "numWeights", c->a[2].i, 1, INT32_MAX);
	ck_shape(&k, y, "out", 2, want);
	ck_alike(&k, g, "grad", y, "out");
	return k.rc;
}
static int EmbeddingDenseBackward_run(const fcall *c) {
	int64_t v = c->a[2].i, pad = c->a[3].i, n = ft_numel(c->a[1].t), d = c->a[5].t->dims[1], *id = pack_i(c->a[1].t), *order = order_of(c, n);
	float *g = pack_f(c->a[0].t);
	double *w = room(v * d, 8);
	int64_t *count = room(v, 8);
	for (int64_t i = 0; i < n; i++) {
		if (id[i] >= 0 && id[i] < v) count[id[i]]++;
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t j = order[i], r = id[j];
		if (r == pad) continue;
		if (r < 0 || r >= v) {
			fake_out_of_range++;
			continue;
		}
		for (int64_t q = 0; q < d; q++) w[r * d + q] = sum(c, w[r * d + q], g[j * d + q] / (c->a[4].i ? (float)count[r] : 1));
	}
	unpack_d(c->a[5].t, w);
	free(id), free(order), free(g), free(w), free(count);
	return 0;
}
static int64_t EmbeddingDenseBackward_ws(const fcall *c) { return ws_of(c->a[5].t); }
FOP(EmbeddingDenseBackward) = {.check = EmbeddingDenseBackward_check, .run = EmbeddingDenseBackward_run, .workspace = EmbeddingDenseBackward_ws,
	.nondeterministic = true};
