// Matrix products. Operands are strided views; sums are f32. A 16-bit product with an f32 result is exact in 9.x; 8.1 rounds it to 16 bits first.
#include "op.h"

typedef struct product {
	int a, b, out, bias, beta, alpha, cube; // argument numbers; -1: none
	int rank;                               // 2, 3, or 0: as Matmul has it
} product;

static const ft *flat(const ft *t, const ft *to, ft *v) { // t with the rank of to, repeating by strides of 0
	*v = *to;
	v->base = t->base;
	v->offset = t->offset;
	v->dtype = t->dtype;
	for (int i = 0; i < to->nd; i++) {
		int j = i - (to->nd - t->nd);
		v->strides[i] = j < 0 || t->dims[j] == 1 ? 0 : t->strides[j];
	}
	return v;
}

// whole_rank gives the operands of Matmul two dims at least: a vector is a row on the left, a column on the right.
static void whole_rank(ft *a, ft *b) {
	if (a->nd == 1) {
		a->dims[1] = a->dims[0], a->strides[1] = a->strides[0];
		a->dims[0] = 1, a->strides[0] = 0;
		a->nd = 2;
	}
	if (b->nd == 1) {
		b->dims[1] = 1, b->strides[1] = 0;
		b->nd = 2;
	}
}

static int result_dims(ck *k, const ft *a0, const ft *b0, int64_t *dims) {
	ft a = *a0, b = *b0;
	int nd = 0;
	whole_rank(&a, &b);
	if (a.dims[a.nd - 1] != b.dims[b.nd - 2]) {
		ck_fail(k, ACLNN_PARAM, "The k-axis of the two inputs are different: self has %lld, mat2 has %lld.", (long long)a.dims[a.nd - 1],
			(long long)b.dims[b.nd - 2]);
		return 0;
	}
	if (!broadcast(a.dims, a.nd - 2, b.dims, b.nd - 2, dims, &nd)) {
		ck_fail(k, ACLNN_PARAM, "the batch dims of self and mat2 can not broadcast.");
		return 0;
	}
	if (a0->nd > 1) dims[nd++] = a.dims[a.nd - 2];
	if (b0->nd > 1) dims[nd++] = b.dims[b.nd - 1];
	return nd;
}

static int product_check(const fcall *c, char *err, size_t n, product p) {
	CK(k);
	const char *an = p.bias >= 0 ? (p.rank == 3 ? "batch1" : "mat1") : "self", *bn = p.rank == 3 && p.bias >= 0 ? "batch2" : "mat2";
	ft *a = ck_t(&k, p.a, an, D_FLOAT), *b = ck_t(&k, p.b, bn, D_FLOAT);
	ft *bias = p.bias >= 0 ? ck_t(&k, p.bias, p.out == p.bias ? "selfRef" : "self", D_FLOAT) : NULL, *out = ck_t(&k, p.out, "out", D_FLOAT);
	if (p.beta >= 0) ck_s(&k, p.beta, "beta"), ck_s(&k, p.alpha, "alpha");
	if (k.rc) return k.rc;
	ck_rank(&k, a, an, p.rank ? p.rank : 1, p.rank ? p.rank : 6);
	ck_rank(&k, b, bn, p.rank ? p.rank : 1, p.rank ? p.rank : 6);
	ck_alike(&k, a, an, b, bn);
	if (k.rc) return k.rc;
	if (p.rank == 3 && a->dims[0] != b->dims[0] && p.bias >= 0) ck_fail(&k, ACLNN_PARAM, "batch1 and batch2 have different batches.");
	int64_t dims[FAKE_DIMS];
	int nd = result_dims(&k, a, b, dims);
	ck_shape(&k, out, "out", nd, dims);
	if (!k.rc && bias) {
		int64_t both[FAKE_DIMS];
		int bd = 0;
		ck_alike(&k, a, an, bias, "self");
		bool fits = broadcast(bias->dims, bias->nd, dims, nd, both, &bd) && bd == nd;
		for (int i = 0; fits && i < nd; i++) fits = both[i] == dims[i];
		if (!fits) ck_fail(&k, ACLNN_PARAM, "self can not broadcast to the shape of the product.");
	}
	if (!k.rc && out->dtype != a->dtype && !(is_half(a->dtype) && out->dtype == DT_F32)) {
		ck_fail(&k, ACLNN_PARAM, "out dtype DT_%s, expected DT_%s or DT_FLOAT.", dtype_name(out->dtype), dtype_name(a->dtype));
	}
	int64_t cube = c->a[p.cube].i;
	ck_cube(&k, a, c->cann >= 90 && cube == 4 ? 0 : cube);
	return k.rc;
}

static float *operand(const ft *t, int64_t cube) {
	float *v = pack_f(t);
	cube_round(v, ft_numel(t), t->dtype, cube);
	return v;
}

static void products(const fcall *c, const product *p, const ft *out, float *y) {
	ft a = *c->a[p->a].t, b = *c->a[p->b].t, o = *out, av, bv;
	bool row = a.nd == 1, column = b.nd == 1;
	whole_rank(&a, &b);
	int64_t m = a.dims[a.nd - 2], k = a.dims[a.nd - 1], n = b.dims[b.nd - 1], cube = c->a[p->cube].i, batches = 1;
	o.nd -= !row + !column;
	for (int i = 0; i < o.nd; i++) batches *= o.dims[i];
	ft shape = o;
	shape.nd = o.nd + 2;
	shape.dims[o.nd] = m, shape.dims[o.nd + 1] = k;
	const bool many = batches > 1 && (a.nd > 2);
	float *pa = operand(many ? flat(&a, &shape, &av) : &a, cube);
	shape.dims[o.nd] = k, shape.dims[o.nd + 1] = n;
	const bool manyb = batches > 1 && (b.nd > 2);
	float *pb = operand(manyb ? flat(&b, &shape, &bv) : &b, cube);
	for (int64_t i = 0; i < batches; i++) gemm(m, n, k, pa + (many ? i * m * k : 0), k, 1, pb + (manyb ? i * k * n : 0), n, 1, 0, y + i * m * n, n);
	free(pa);
	free(pb);
}

static int product_run(const fcall *c, product p) {
	const ft *out = c->a[p.out].t, *a = c->a[p.a].t;
	int64_t n = ft_numel(out);
	float *y = room(n, sizeof *y);
	if (n > 0) products(c, &p, out, y);
	if (p.bias >= 0) {
		ft v;
		float *bias = pack_f(flat(c->a[p.bias].t, out, &v)), beta = (float)c->a[p.beta].s->f, alpha = (float)c->a[p.alpha].s->f;
		for (int64_t i = 0; i < n; i++) y[i] = alpha * y[i] + (beta == 0 ? 0 : beta * bias[i]);
		free(bias);
	}
	if (is_half(a->dtype) && out->dtype == DT_F32 && c->cann < 90) round_f(y, n, a->dtype);
	unpack_f(out, y);
	free(y);
	return 0;
}

#define PRODUCT(name, ...) \
	static const product name##_p = {__VA_ARGS__}; \
	static int name##_check(const fcall *c, char *err, size_t n) { return product_check(c, err, n, name##_p); } \
	static int name##_run(const fcall *c) { return product_run(c, name##_p); } \
	static int64_t name##_ws(const fcall *c) { return ws_of(c->a[name##_p.out].t); } \
	FOP(name) = {.check = name##_check, .run = name##_run, .workspace = name##_ws};

PRODUCT(Mm, .a = 0, .b = 1, .out = 2, .bias = -1, .beta = -1, .alpha = -1, .cube = 3, .rank = 2)
PRODUCT(Matmul, .a = 0, .b = 1, .out = 2, .bias = -1, .beta = -1, .alpha = -1, .cube = 3, .rank = 0)
PRODUCT(BatchMatMul, .a = 0, .b = 1, .out = 2, .bias = -1, .beta = -1, .alpha = -1, .cube = 3, .rank = 3)
PRODUCT(Addmm, .a = 1, .b = 2, .out = 5, .bias = 0, .beta = 3, .alpha = 4, .cube = 6, .rank = 2)
PRODUCT(InplaceAddmm, .a = 1, .b = 2, .out = 0, .bias = 0, .beta = 3, .alpha = 4, .cube = 5, .rank = 2)
PRODUCT(Baddbmm, .a = 1, .b = 2, .out = 5, .bias = 0, .beta = 3, .alpha = 4, .cube = 6, .rank = 3)
