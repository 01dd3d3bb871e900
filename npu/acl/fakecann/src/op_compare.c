// Comparisons, logic, choices by a condition. Results of comparisons are bool, nothing else.
#include "op_ew.h"

static int compare_check(const fcall *c, char *err, size_t n, bool scalar) {
	CK(k);
	ft *a = ck_t(&k, 0, "self", D_MOST), *b = scalar ? NULL : ck_t(&k, 1, "other", D_MOST), *y = ck_t(&k, 2, "out", D(BOOL));
	if (scalar) ck_s(&k, 1, "other");
	if (k.rc) return k.rc;
	const ft *in[2] = {a, b};
	ck_broadcast(&k, scalar ? 1 : 2, in, y, "out");
	return k.rc;
}

static int compare_run(const fcall *c, const ew *k, bool scalar) {
	const ft *in[2] = {c->a[0].t, scalar ? NULL : c->a[1].t};
	double p[2] = {0, 0};
	int dtype = scalar ? promote_scalar(in[0]->dtype, c->a[1].s->dtype) : promote(in[0]->dtype, in[1]->dtype);
	if (scalar) p[0] = c->a[1].s->f;
	if (is_half(dtype)) dtype = DT_F32;
	ew_run(c->a[2].t, scalar ? 1 : 2, in, dtype, k, p);
	return 0;
}

#define COMPARE(name, op) \
	EW(name##Tensor, 2, a op b, a op b, a op b) \
	EW(name##Scalar, 1, a op p0, a op p0, a op p0) \
	static int name##Tensor_check(const fcall *c, char *err, size_t n) { return compare_check(c, err, n, false); } \
	static int name##Scalar_check(const fcall *c, char *err, size_t n) { return compare_check(c, err, n, true); } \
	static int name##Tensor_run(const fcall *c) { return compare_run(c, &name##Tensor_k, false); } \
	static int name##Scalar_run(const fcall *c) { return compare_run(c, &name##Scalar_k, true); } \
	FOP(name##Tensor) = {.check = name##Tensor_check, .run = name##Tensor_run}; \
	FOP(name##Scalar) = {.check = name##Scalar_check, .run = name##Scalar_run};

COMPARE(Eq, ==)
COMPARE(Ne, !=)
COMPARE(Gt, >)
COMPARE(Ge, >=)
COMPARE(Lt, <)
COMPARE(Le, <=)

EW(and2, 2, a != 0 && b != 0, a != 0 && b != 0, a && b)
EW(or2, 2, a != 0 || b != 0, a != 0 || b != 0, a || b)
EW(not1, 1, a == 0, a == 0, a == 0)
EW(finite, 1, isfinite(a), isfinite(a), 1)

#define LOGIC(name, kernel) \
	static int name##_check(const fcall *c, char *err, size_t n) { return compare_check(c, err, n, false); } \
	static int name##_run(const fcall *c) { return compare_run(c, &kernel##_k, false); } \
	FOP(name) = {.check = name##_check, .run = name##_run};

LOGIC(LogicalAnd, and2)
LOGIC(LogicalOr, or2)

static int test_check(const fcall *c, char *err, size_t n, uint32_t dtypes) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", dtypes), *y = ck_t(&k, 1, "out", D(BOOL));
	ck_same(&k, x, "self", y, "out");
	return k.rc;
}

static int test_run(const fcall *c, const ew *k) {
	const ft *in[1] = {c->a[0].t};
	ew_run(c->a[1].t, 1, in, is_half(in[0]->dtype) ? DT_F32 : in[0]->dtype, k, NULL);
	return 0;
}

static int LogicalNot_check(const fcall *c, char *err, size_t n) { return test_check(c, err, n, D_MOST); }
static int LogicalNot_run(const fcall *c) { return test_run(c, &not1_k); }
FOP(LogicalNot) = {.check = LogicalNot_check, .run = LogicalNot_run};

static int IsFinite_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC_TRAIN);
	return k.rc ? k.rc : test_check(c, err, n, D_FLOAT64);
}
static int IsFinite_run(const fcall *c) { return test_run(c, &finite_k); }
FOP(IsFinite) = {.check = IsFinite_check, .run = IsFinite_run};

EW(choose, 3, a != 0 ? b : c, a != 0 ? b : c, a ? b : c)

static int SWhere_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *m = ck_t(&k, 0, "condition", D_MASK), *a = ck_t(&k, 1, "self", D_MOST), *b = ck_t(&k, 2, "other", D_MOST), *y = ck_t(&k, 3, "out", D_MOST);
	if (k.rc) return k.rc;
	const ft *in[3] = {m, a, b};
	ck_broadcast(&k, 3, in, y, "out");
	ck_dtype(&k, y, "out", promote(a->dtype, b->dtype));
	return k.rc;
}

static int SWhere_run(const fcall *c) {
	const ft *in[3] = {c->a[0].t, c->a[1].t, c->a[2].t};
	ew_run(c->a[3].t, 3, in, c->a[3].t->dtype, &choose_k, NULL);
	return 0;
}

FOP(SWhere) = {.check = SWhere_check, .run = SWhere_run};

EW(masked, 2, b != 0 ? p0 : a, b != 0 ? p0 : a, b ? p0 : a)

static int InplaceMaskedFillScalar_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "selfRef", D_FLOAT | D(I8) | D(I32) | D(I64) | D(BOOL)), *m = ck_t(&k, 1, "mask", D(BOOL));
	ck_s(&k, 2, "value");
	if (k.rc) return k.rc;
	const ft *in[2] = {x, m};
	ck_broadcast(&k, 2, in, x, "selfRef");
	return k.rc;
}

static int InplaceMaskedFillScalar_run(const fcall *c) {
	const ft *in[2] = {c->a[0].t, c->a[1].t};
	const double p[2] = {c->a[2].s->f, 0};
	ew_run(in[0], 2, in, in[0]->dtype, &masked_k, p);
	return 0;
}

FOP(InplaceMaskedFillScalar) = {.check = InplaceMaskedFillScalar_check, .run = InplaceMaskedFillScalar_run};
