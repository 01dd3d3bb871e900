// Copies, conversions, fills and views: the operators whose result is their operand in another place, order or dtype.
#include "op_ew.h"

typedef struct raw_copy {
	int64_t size;
} raw_copy;

static void raw_rows(void *ctx, char *const *p, const int64_t *st, int64_t n) {
	int64_t size = ((raw_copy *)ctx)->size;
	if (st[0] == 1 && st[1] == 1) {
		memmove(p[0], p[1], (size_t)(n * size));
		return;
	}
	for (int64_t k = 0; k < n; k++) memcpy(p[0] + k * st[0] * size, p[1] + k * st[1] * size, (size_t)size);
}

EW(same, 1, a, a, a)

void copy_into(const ft *to, const ft *from) {
	if (to->dtype != from->dtype) {
		ew_run(to, 1, &from, from->dtype, &same_k, NULL);
		return;
	}
	if (to->base == from->base && to->offset == from->offset && ft_same_shape(to, from) && !memcmp(to->strides, from->strides, sizeof to->strides)) return;
	loop l;
	raw_copy r = {dtype_size(to->dtype)};
	loop_open(&l, to->dims, to->nd);
	loop_add(&l, to);
	loop_add(&l, from);
	loop_run(&l, raw_rows, &r);
}

void fill_with(const ft *to, double v) {
	char value[8];
	ft one = {.dims = {1}, .strides = {1}, .nd = 1, .dtype = to->dtype, .storage = 1, .base = value};
	value_store(value, to->dtype, 0, v);
	copy_into(to, &one);
}

static int Cast_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *y = ck_t(&k, 2, "out", D_MOST);
	ck_same(&k, x, "self", y, "out");
	ck_dtype(&k, y, "out", (int)c->a[1].i);
	return k.rc;
}
static int Cast_run(const fcall *c) {
	copy_into(c->a[2].t, c->a[0].t);
	return 0;
}
FOP(Cast) = {.check = Cast_check, .run = Cast_run};

static int InplaceCopy_check(const fcall *c, char *err, size_t n) {
	CK(k);
	const ft *to = ck_t(&k, 0, "selfRef", D_MOST), *from = ck_t(&k, 1, "src", D_MOST);
	if (k.rc) return k.rc;
	const ft *in[2] = {to, from};
	ck_broadcast(&k, 2, in, to, "selfRef");
	for (int i = 0; i < to->nd; i++) {
		if (to->strides[i] == 0 && to->dims[i] > 1) ck_fail(&k, ACLNN_PARAM, "selfRef repeats elements (stride 0 of dim %d): nothing can be written to it.", i);
	}
	return k.rc;
}
static int InplaceCopy_run(const fcall *c) {
	copy_into(c->a[0].t, c->a[1].t);
	return 0;
}
FOP(InplaceCopy) = {.check = InplaceCopy_check, .run = InplaceCopy_run};

static int InplaceFillScalar_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_t(&k, 0, "selfRef", D_MOST);
	ck_s(&k, 1, "value");
	return k.rc;
}
static int InplaceFillScalar_run(const fcall *c) {
	fill_with(c->a[0].t, c->a[1].s->f);
	return 0;
}
FOP(InplaceFillScalar) = {.check = InplaceFillScalar_check, .run = InplaceFillScalar_run};

static int InplaceFillTensor_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_t(&k, 0, "selfRef", D_FLOAT | D_INT | D(BOOL));
	ft *v = ck_t(&k, 1, "value", D_FLOAT | D_INT | D(BOOL));
	if (!k.rc && ft_numel(v) != 1) ck_fail(&k, ACLNN_PARAM, "value has %lld elements, expected 1.", (long long)ft_numel(v));
	return k.rc;
}
static int InplaceFillTensor_run(const fcall *c) {
	ft one = *c->a[1].t;
	one.nd = 0;
	copy_into(c->a[0].t, &one);
	return 0;
}
FOP(InplaceFillTensor) = {.check = InplaceFillTensor_check, .run = InplaceFillTensor_run};

static int self_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_t(&k, 0, "selfRef", D_MOST);
	return k.rc;
}
static int InplaceZero_run(const fcall *c) {
	fill_with(c->a[0].t, 0);
	return 0;
}
FOP(InplaceZero) = {.check = self_check, .run = InplaceZero_run};

static int InplaceOne_run(const fcall *c) {
	fill_with(c->a[0].t, 1);
	return 0;
}
FOP(InplaceOne) = {.check = self_check, .run = InplaceOne_run};

static int Permute_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *y = ck_t(&k, 2, "out", D_MOST);
	if (k.rc) return k.rc;
	const farray *a = ck_array(&k, 1, "dims", x->nd, x->nd);
	int64_t want[FAKE_DIMS];
	unsigned seen = 0;
	for (int i = 0; i < x->nd && !k.rc; i++) {
		int d = ck_dim(&k, x, "dims", a->i[i]);
		if (seen >> d & 1) ck_fail(&k, ACLNN_PARAM, "dims names the dim %d twice.", d);
		seen |= 1u << d;
		want[i] = x->dims[d];
	}
	ck_shape(&k, y, "out", x->nd, want);
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int Permute_run(const fcall *c) {
	const ft *x = c->a[0].t;
	ft v = *x;
	for (int i = 0; i < x->nd; i++) {
		int64_t d = c->a[1].a->i[i];
		if (d < 0) d += x->nd;
		v.dims[i] = x->dims[d];
		v.strides[i] = x->strides[d];
	}
	copy_into(c->a[2].t, &v);
	return 0;
}
FOP(Permute) = {.check = Permute_check, .run = Permute_run};

static int Expand_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_MOST), *y = ck_t(&k, 2, "out", D_MOST);
	if (k.rc) return k.rc;
	const farray *a = ck_array(&k, 1, "size", x->nd, FAKE_DIMS);
	int64_t want[FAKE_DIMS];
	for (int64_t i = 0; !k.rc && i < a->n; i++) {
		int64_t j = i - (a->n - x->nd), has = j < 0 ? 1 : x->dims[j];
		want[i] = a->i[i] == -1 ? has : a->i[i];
		if (has != want[i] && has != 1) ck_fail(&k, ACLNN_PARAM, "size[%lld] is %lld, self has %lld there.", (long long)i, (long long)want[i], (long long)has);
	}
	if (k.rc) return k.rc;
	ck_shape(&k, y, "out", (int)a->n, want);
	ck_alike(&k, x, "self", y, "out");
	return k.rc;
}
static int Expand_run(const fcall *c) {
	copy_into(c->a[2].t, c->a[0].t);
	return 0;
}
FOP(Expand) = {.check = Expand_check, .run = Expand_run};

// joined_check: tensors of equal dtypes, and of equal shapes but for the axis of Cat.
static int joined_check(const fcall *c, char *err, size_t n, bool stack) {
	CK(k);
	const flist *l = ck_list(&k, 0, "tensors", D_MOST);
	ft *y = ck_t(&k, 2, "out", D_MOST);
	if (k.rc) return k.rc;
	ft first = *l->t[0];
	if (stack) first.nd++;
	int d = ck_dim(&k, &first, "dim", c->a[1].i);
	int64_t want[FAKE_DIMS], sum = 0;
	for (int64_t i = 0; i < l->n && !k.rc; i++) {
		ck_rank(&k, l->t[i], "tensors", l->t[0]->nd, l->t[0]->nd);
		ck_alike(&k, l->t[0], "tensors[0]", l->t[i], "tensors");
		for (int j = 0; j < l->t[0]->nd && !k.rc; j++) {
			if (l->t[i]->dims[j] != l->t[0]->dims[j] && (stack || j != d)) ck_fail(&k, ACLNN_PARAM,
				"tensors[%lld] differs from tensors[0] in dim %d.", (long long)i, j);
		}
		if (!stack && l->t[i]->nd) sum += l->t[i]->dims[d];
	}
	if (k.rc) return k.rc;
	if (!stack && l->t[0]->nd == 0) return ck_fail(&k, ACLNN_PARAM, "tensors[0] has 0 dims.");
	for (int j = 0; j < first.nd; j++) want[j] = l->t[0]->dims[stack && j > d ? j - 1 : j];
	want[d] = stack ? l->n : sum;
	ck_shape(&k, y, "out", first.nd, want);
	ck_alike(&k, l->t[0], "tensors[0]", y, "out");
	return k.rc;
}

static int joined_run(const fcall *c, bool stack) {
	const flist *l = c->a[0].l;
	const ft *y = c->a[2].t;
	int d = (int)(c->a[1].i < 0 ? c->a[1].i + y->nd : c->a[1].i);
	ft v = *y;
	for (int64_t i = 0; i < l->n; i++) {
		ft from = *l->t[i];
		if (stack) {
			for (int j = y->nd - 1; j > d; j--) from.dims[j] = from.dims[j - 1], from.strides[j] = from.strides[j - 1];
			from.dims[d] = 1;
			from.strides[d] = 0;
			from.nd = y->nd;
		}
		v.dims[d] = from.dims[d];
		copy_into(&v, &from);
		v.offset += from.dims[d] * v.strides[d];
	}
	return 0;
}

static int Cat_check(const fcall *c, char *err, size_t n) { return joined_check(c, err, n, false); }
static int Cat_run(const fcall *c) { return joined_run(c, false); }
FOP(Cat) = {.check = Cat_check, .run = Cat_run};
static int Stack_check(const fcall *c, char *err, size_t n) { return joined_check(c, err, n, true); }
static int Stack_run(const fcall *c) { return joined_run(c, true); }
FOP(Stack) = {.check = Stack_check, .run = Stack_run};
