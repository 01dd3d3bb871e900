// Rotary positions. The tables have the dtype of x, and limits that are easy to run into.
#include "op.h"

// partner finds the element that is mixed into j, and its sign: half pairs j with j ± D/2, interleave 2i with 2i+1.
static int64_t partner(int64_t j, int64_t d, bool interleave, float *sign) {
	if (interleave) {
		*sign = j % 2 ? 1 : -1;
		return j ^ 1;
	}
	*sign = j < d / 2 ? -1 : 1;
	return j < d / 2 ? j + d / 2 : j - d / 2;
}

// rotate: y = x·cos + rotated(x)·sin; back is the transposed of it. Tables repeat over dims of 1.
static float *table_like(const ft *t, const ft *x) {
	ft v = *t;
	for (int i = 0; i < x->nd; i++) {
		if (t->dims[i] != x->dims[i]) v.dims[i] = x->dims[i], v.strides[i] = 0;
	}
	return pack_f(&v);
}

static void rotate(const ft *x, const ft *cos, const ft *sin, bool interleave, bool back, const ft *y) {
	int64_t d = x->dims[x->nd - 1], n = ft_numel(x);
	float *px = pack_f(x), *pc = table_like(cos, x), *ps = table_like(sin, x), *py = room(n, 4);
	for (int64_t i = 0; i < n; i++) {
		float sign, other;
		int64_t j = i - i % d + partner(i % d, d, interleave, &sign);
		other = back ? -sign * px[j] * ps[j] : sign * px[j] * ps[i];
		py[i] = px[i] * pc[i] + other;
	}
	unpack_f(y, py);
	free(px), free(pc), free(ps), free(py);
}

static void rope_tables(ck *k, const ft *x, const ft *cos, const ft *sin, int64_t mode) {
	if (k->rc) return;
	ck_rank(k, x, "x", 4, 4);
	ck_rank(k, cos, "cos", 4, 4);
	ck_same(k, cos, "cos", sin, "sin");
	ck_alike(k, x, "x", cos, "cos");
	ck_alike(k, x, "x", sin, "sin");
	ck_between(k, "mode", mode, 0, 1);
	if (k->rc) return;
	int64_t b = x->dims[0], heads = x->dims[2], d = x->dims[3];
	if (d % 2 || d >= 896) ck_fail(k, ACLNN_PARAM, "the last dim of x is %lld, should be even and less than 896.", (long long)d);
	if (cos->dims[3] != d) ck_fail(k, ACLNN_PARAM, "the last dim of cos is %lld, x has %lld.", (long long)cos->dims[3], (long long)d);
	for (int i = 0; i < 3 && !k->rc; i++) {
		if (cos->dims[i] != 1 && cos->dims[i] != x->dims[i]) ck_fail(k, ACLNN_PARAM, "dim %d of cos is %lld, x has %lld.", i,
			(long long)cos->dims[i], (long long)x->dims[i]);
	}
	if (mode == 1 && (cos->dims[0] != 1 || cos->dims[2] != 1)) ck_fail(k, ACLNN_PARAM, "interleave wants cos and sin of shape [1,S,1,D].");
	if (mode == 1 ? b * heads >= 1000 : b >= 1000 || heads >= 1000) ck_fail(k, ACLNN_PARAM, "x has %lld batches and %lld heads, too many.",
		(long long)b, (long long)heads);
}

static int RotaryPositionEmbedding_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC(A2) | SOC(A3));
	ft *x = ck_t(&k, 0, "x", D_FLOAT), *cos = ck_t(&k, 1, "cos", D_FLOAT), *sin = ck_t(&k, 2, "sin", D_FLOAT), *y = ck_t(&k, 4, "out", D_FLOAT);
	rope_tables(&k, x, cos, sin, c->a[3].i);
	ck_same(&k, x, "x", y, "out");
	ck_alike(&k, x, "x", y, "out");
	return k.rc;
}
static int RotaryPositionEmbedding_run(const fcall *c) {
	rotate(c->a[0].t, c->a[1].t, c->a[2].t, c->a[3].i, false, c->a[4].t);
	return 0;
}
FOP(RotaryPositionEmbedding) = {.check = RotaryPositionEmbedding_check, .run = RotaryPositionEmbedding_run};

static int RotaryPositionEmbeddingGrad_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC(A2) | SOC(A3));
	ft *dy = ck_t(&k, 0, "dy", D_FLOAT), *cos = ck_t(&k, 1, "cos", D_FLOAT), *sin = ck_t(&k, 2, "sin", D_FLOAT), *x = ck_opt(&k, 3, "xOptional", D_FLOAT);
	ft *dx = ck_t(&k, 5, "dx", D_FLOAT), *dc = x ? ck_t(&k, 6, "dcos", D_FLOAT) : NULL, *ds = x ? ck_t(&k, 7, "dsin", D_FLOAT) : NULL;
	rope_tables(&k, dy, cos, sin, c->a[4].i);
	ck_same(&k, dy, "dy", x, "xOptional");
	ck_alike(&k, dy, "dy", x, "xOptional");
	ck_same(&k, dy, "dy", dx, "dx");
	ck_alike(&k, dy, "dy", dx, "dx");
	ck_same(&k, cos, "cos", dc, "dcos");
	ck_alike(&k, cos, "cos", dc, "dcos");
	ck_same(&k, cos, "cos", ds, "dsin");
	ck_alike(&k, cos, "cos", ds, "dsin");
	return k.rc;
}

// tables_back adds up dy·x and dy·rotated(x) over the dims in which the tables repeat.
static void tables_back(const fcall *c) {
	const ft *dy = c->a[0].t, *t = c->a[1].t;
	int64_t d = dy->dims[3], n = ft_numel(dy);
	float *g = pack_f(dy), *x = pack_f(c->a[3].t);
	double *dc = room(ft_numel(t), 8), *ds = room(ft_numel(t), 8);
	ft v = *t; // the table's plain position for an element of dy
	v.offset = 0;
	for (int i = 3, s = 1; i >= 0; s *= (int)t->dims[i--]) {
		v.dims[i] = dy->dims[i];
		v.strides[i] = t->dims[i] == dy->dims[i] ? s : 0;
	}
	for (int64_t i = 0; i < n; i++) {
		float sign;
		int64_t j = i - i % d + partner(i % d, d, c->a[4].i, &sign), at = ft_at(&v, i);
		dc[at] += (double)g[i] * x[i];
		ds[at] += (double)g[i] * sign * x[j];
	}
	unpack_d(c->a[6].t, dc);
	unpack_d(c->a[7].t, ds);
	free(g), free(x), free(dc), free(ds);
}

static int RotaryPositionEmbeddingGrad_run(const fcall *c) {
	if (c->a[3].t) tables_back(c);
	rotate(c->a[0].t, c->a[1].t, c->a[2].t, c->a[4].i, true, c->a[5].t);
	return 0;
}
FOP(RotaryPositionEmbeddingGrad) = {.check = RotaryPositionEmbeddingGrad_check, .run = RotaryPositionEmbeddingGrad_run};

static int ApplyRotaryPosEmb_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC(A2) | SOC(A3));
	ft *q = ck_t(&k, 0, "queryRef", D_FLOAT), *key = ck_t(&k, 1, "keyRef", D_FLOAT), *cos = ck_t(&k, 2, "cos", D_FLOAT), *sin = ck_t(&k, 3, "sin", D_FLOAT);
	ck_rank(&k, q, "queryRef", 4, 4);
	ck_rank(&k, key, "keyRef", 4, 4);
	ck_between(&k, "layout", c->a[4].i, 1, 1);
	if (k.rc) return k.rc;
	ck_between(&k, "the last dim of queryRef", q->dims[3], 128, 128);
	const int64_t table[4] = {q->dims[0], q->dims[1], 1, 128}, keys[4] = {q->dims[0], q->dims[1], key->dims[2], 128};
	ck_shape(&k, key, "keyRef", 4, keys);
	ck_shape(&k, cos, "cos", 4, table);
	ck_shape(&k, sin, "sin", 4, table);
	ck_alike(&k, q, "queryRef", key, "keyRef");
	ck_alike(&k, q, "queryRef", cos, "cos");
	ck_alike(&k, q, "queryRef", sin, "sin");
	return k.rc;
}
static int ApplyRotaryPosEmb_run(const fcall *c) {
	for (int i = 0; i < 2; i++) rotate(c->a[i].t, c->a[2].t, c->a[3].t, false, false, c->a[i].t);
	return 0;
}
FOP(ApplyRotaryPosEmb) = {.check = ApplyRotaryPosEmb_check, .run = ApplyRotaryPosEmb_run};
