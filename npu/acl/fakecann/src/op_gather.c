// Reads by index: rows and elements. An index out of range leaves its part of the result undefined: poison here, counted.
#include "op.h"

// taken is out without the axes that the index fills, at one position of the index.
static ft place(const ft *out, int dim, int width, int64_t flat, const ft *index) {
	ft v = *out;
	v.nd = 0;
	int64_t at[FAKE_DIMS];
	for (int i = width - 1; i >= 0; i--) {
		at[i] = flat % index->dims[i];
		flat /= index->dims[i];
	}
	for (int i = 0; i < out->nd; i++) {
		if (i >= dim && i < dim + width) {
			v.offset += at[i - dim] * out->strides[i];
			continue;
		}
		v.dims[v.nd] = out->dims[i];
		v.strides[v.nd++] = out->strides[i];
	}
	return v;
}

// gather_rows copies self[…, index[…], …] for all positions of the index, which takes the place of dim.
static void gather_rows(const ft *self, int dim, const ft *index, const ft *out) {
	int64_t n = ft_numel(index), *id = pack_i(index);
	for (int64_t i = 0; i < n; i++) {
		ft to = place(out, dim, index->nd, i, index), from = *self;
		if (id[i] < 0 || id[i] >= self->dims[dim]) {
			fake_out_of_range++;
			fill_with(&to, POISON);
			continue;
		}
		from.offset += id[i] * self->strides[dim];
		from.nd = 0;
		for (int j = 0; j < self->nd; j++) {
			if (j != dim) from.dims[from.nd] = self->dims[j], from.strides[from.nd++] = self->strides[j];
		}
		copy_into(&to, &from);
	}
	free(id);
}

static void rows_shape(ck *k, const ft *self, int dim, const ft *index, const ft *out) {
	if (k->rc) return;
	int64_t want[2 * FAKE_DIMS];
	int nd = 0;
	for (int i = 0; i < self->nd; i++) {
		if (i != dim) want[nd++] = self->dims[i];
		for (int j = 0; i == dim && j < index->nd; j++) want[nd++] = index->dims[j];
	}
	ck_shape(k, out, "out", nd, want);
}

static int select_check(const fcall *c, char *err, size_t n, int rank) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *index = ck_t(&k, 2, "index", D_INDEX), *y = ck_t(&k, 3, "out", D_MOST);
	ck_rank(&k, x, "self", 1, FAKE_DIMS);
	ck_rank(&k, index, "index", rank ? 1 : 0, rank ? rank : FAKE_DIMS);
	ck_alike(&k, x, "self", y, "out");
	rows_shape(&k, x, ck_dim(&k, x, "dim", c->a[1].i), index, y);
	return k.rc;
}

static int select_run(const fcall *c) {
	const ft *x = c->a[0].t;
	gather_rows(x, (int)(c->a[1].i < 0 ? c->a[1].i + x->nd : c->a[1].i), c->a[2].t, c->a[3].t);
	return 0;
}

static int IndexSelect_check(const fcall *c, char *err, size_t n) { return select_check(c, err, n, 1); }
FOP(IndexSelect) = {.check = IndexSelect_check, .run = select_run};
static int GatherV2_check(const fcall *c, char *err, size_t n) { return select_check(c, err, n, 0); }
FOP(GatherV2) = {.check = GatherV2_check, .run = select_run};

static int Embedding_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *w = ck_t(&k, 0, "weight", D_MOST), *ids = ck_t(&k, 1, "indices", D_INDEX), *y = ck_t(&k, 2, "out", D_MOST);
	ck_rank(&k, w, "weight", 2, 2);
	ck_alike(&k, w, "weight", y, "out");
	rows_shape(&k, w, 0, ids, y);
	return k.rc;
}
static int Embedding_run(const fcall *c) {
	gather_rows(c->a[0].t, 0, c->a[1].t, c->a[2].t);
	return 0;
}
FOP(Embedding) = {.check = Embedding_check, .run = Embedding_run};

static int Gather_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC(A2) | SOC(A3) | SOC(950));
	ft *x = ck_t(&k, 0, "self", D_MOST), *index = ck_t(&k, 2, "index", D_INDEX), *y = ck_t(&k, 3, "out", D_MOST);
	int d = ck_dim(&k, x, "dim", c->a[1].i);
	if (k.rc) return k.rc;
	ck_rank(&k, index, "index", x->nd, x->nd);
	for (int i = 0; i < x->nd && !k.rc; i++) {
		if (i != d && index->dims[i] > x->dims[i]) ck_fail(&k, ACLNN_PARAM, "dim %d of index is larger than that of self.", i);
	}
	ck_same(&k, index, "index", y, "out");
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}

static int Gather_run(const fcall *c) {
	const ft *x = c->a[0].t, *index = c->a[2].t, *y = c->a[3].t;
	int64_t n = ft_numel(index), *id = pack_i(index), size = dtype_size(x->dtype);
	int d = (int)(c->a[1].i < 0 ? c->a[1].i + x->nd : c->a[1].i);
	ft at = *index; // where index's position lies in x, along dim at 0
	memcpy(at.strides, x->strides, sizeof at.strides);
	at.strides[d] = 0;
	at.offset = x->offset;
	for (int64_t i = 0; i < n; i++) {
		if (id[i] < 0 || id[i] >= x->dims[d]) {
			fake_out_of_range++;
			value_store(y->base, y->dtype, ft_at(y, i), POISON);
		} else {
			memcpy(y->base + ft_at(y, i) * size, x->base + (ft_at(&at, i) + id[i] * x->strides[d]) * size, (size_t)size);
		}
	}
	free(id);
	return 0;
}
FOP(Gather) = {.check = Gather_check, .run = Gather_run};

static int OneHot_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_INDEX | D(U8)), *on = ck_t(&k, 2, "onValue", D_MOST), *off = ck_t(&k, 3, "offValue", D_MOST), *y = ck_t(&k, 5, "out", D_MOST);
	if (k.rc) return k.rc;
	ck_between(&k, "axis", c->a[4].i, -1, x->nd);
	ck_between(&k, "numClasses", c->a[1].i, 0, INT32_MAX);
	if (ft_numel(on) != 1 || ft_numel(off) != 1) ck_fail(&k, ACLNN_PARAM, "onValue and offValue should have 1 element.");
	ck_alike(&k, on, "onValue", off, "offValue");
	ck_alike(&k, on, "onValue", y, "out");
	int axis = (int)(c->a[4].i < 0 ? x->nd : c->a[4].i);
	int64_t want[FAKE_DIMS + 1];
	for (int i = 0; i <= x->nd; i++) want[i] = i == axis ? c->a[1].i : x->dims[i < axis ? i : i - 1];
	ck_shape(&k, y, "out", x->nd + 1, want);
	return k.rc;
}
static int OneHot_run(const fcall *c) {
	const ft *x = c->a[0].t, *y = c->a[5].t;
	int64_t n = ft_numel(x), *id = pack_i(x);
	double *on = pack_d(c->a[2].t), *off = pack_d(c->a[3].t);
	int axis = (int)(c->a[4].i < 0 ? x->nd : c->a[4].i);
	fill_with(y, off[0]);
	ft lead = *x; // y's position for class 0
	for (int i = 0; i < x->nd; i++) lead.strides[i] = y->strides[i < axis ? i : i + 1];
	lead.offset = y->offset;
	for (int64_t i = 0; i < n; i++) {
		if (id[i] >= 0 && id[i] < c->a[1].i) value_store(y->base, y->dtype, ft_at(&lead, i) + id[i] * y->strides[axis], on[0]);
	}
	free(id), free(on), free(off);
	return 0;
}
FOP(OneHot) = {.check = OneHot_check, .run = OneHot_run};

// Index: indices of one shape, or that broadcast to one, for the first dims of self.
int index_shape(ck *k, const ft *self, const flist *l, int64_t *dims) {
	if (k->rc) return 0;
	int nd = 0;
	if (l->n > self->nd) ck_fail(k, ACLNN_PARAM, "indices has %lld tensors, self %d dims.", (long long)l->n, self->nd);
	for (int64_t i = 0; i < l->n && !k->rc; i++) {
		if (!broadcast(dims, nd, l->t[i]->dims, l->t[i]->nd, dims, &nd)) ck_fail(k, ACLNN_PARAM, "the shapes of indices can not broadcast.");
	}
	for (int i = (int)l->n; i < self->nd && !k->rc; i++) dims[nd++] = self->dims[i];
	return nd;
}

static int Index_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *y = ck_t(&k, 2, "out", D_MOST);
	const flist *l = ck_list(&k, 1, "indices", D_INDEX);
	int64_t dims[FAKE_DIMS + 8];
	int nd = index_shape(&k, x, l, dims);
	ck_shape(&k, y, "out", nd, dims);
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int Index_run(const fcall *c) {
	const ft *x = c->a[0].t, *y = c->a[2].t;
	const flist *l = c->a[1].l;
	ft lead = *y, tail = *x;
	lead.nd -= x->nd - (int)l->n;
	tail.nd = x->nd - (int)l->n;
	for (int i = 0; i < tail.nd; i++) tail.dims[i] = x->dims[i + l->n], tail.strides[i] = x->strides[i + l->n];
	for (int64_t i = 0; i < ft_numel(&lead); i++) {
		bool bad = false;
		ft from = tail, to = tail;
		for (int64_t j = 0; j < l->n; j++) {
			ft v = lead;
			for (int q = 0; q < lead.nd; q++) {
				int p = q - (lead.nd - l->t[j]->nd);
				v.strides[q] = p < 0 || l->t[j]->dims[p] == 1 ? 0 : l->t[j]->strides[p];
			}
			v.offset = l->t[j]->offset;
			int64_t id = (int64_t)value_load(l->t[j]->base, l->t[j]->dtype, ft_at(&v, i));
			if (id < 0 || id >= x->dims[j]) bad = true;
			else from.offset += id * x->strides[j];
		}
		to.base = y->base, to.offset = ft_at(&lead, i);
		for (int q = 0; q < tail.nd; q++) to.strides[q] = y->strides[lead.nd + q];
		fake_out_of_range += bad;
		if (bad) fill_with(&to, POISON);
		else copy_into(&to, &from);
	}
	return 0;
}
FOP(Index) = {.check = Index_check, .run = Index_run};
