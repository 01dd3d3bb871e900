// Add, Sub and their forms in place: the pattern for elementwise operators. out = self + alpha·other, with broadcast.
#include "fake.h"

// broadcast reports whether a shape broadcasts to another.
static bool broadcasts(const ft *from, const ft *to) {
	if (from->nd > to->nd) return false;
	for (int i = 1; i <= from->nd; i++) {
		int64_t a = from->dims[from->nd - i], b = to->dims[to->nd - i];
		if (a != b && a != 1) return false;
	}
	return true;
}

// spread gives a the shape of to, with strides of zero where it repeats.
static ft spread(const ft *a, const ft *to) {
	ft v = *a;
	v.nd = to->nd;
	for (int i = 0; i < to->nd; i++) {
		int j = i - (to->nd - a->nd);
		v.dims[i] = to->dims[i];
		v.strides[i] = j < 0 || (a->dims[j] == 1 && to->dims[i] != 1) ? 0 : a->strides[j];
	}
	return v;
}

static int add_checked(const ft *self, const ft *other, const fscalar *alpha, const ft *out, char *err, size_t n) {
	if (!self || !other || !alpha || !out) return fail(ACLNN_NULLPTR, err, n, "%s is null", !self ? "self" : !other ? "other" : !alpha ? "alpha" : "out");
	if (self->dtype != other->dtype) return fail(ACLNN_PARAM, err, n, "self has dtype %s, other %s", dtype_name(self->dtype), dtype_name(other->dtype));
	if (self->dtype != out->dtype) return fail(ACLNN_PARAM, err, n, "out has dtype %s, want %s", dtype_name(out->dtype), dtype_name(self->dtype));
	if (!broadcasts(self, out) || !broadcasts(other, out)) return fail(ACLNN_PARAM, err, n, "the shapes of self and other do not broadcast to that of out");
	return ACLNN_OK;
}

static int add_check(const fcall *c, char *err, size_t n) { return add_checked(c->a[0].t, c->a[1].t, c->a[2].s, c->a[3].t, err, n); }

static int add_run(const fcall *c) {
	ft *out = c->a[3].t, a = spread(c->a[0].t, out), b = spread(c->a[1].t, out);
	int64_t n = ft_numel(out);
	for (int64_t i = 0; i < n; i++) {
		double x = value_load(a.base, a.dtype, ft_at(&a, i)), y = value_load(b.base, b.dtype, ft_at(&b, i));
		value_store(out->base, out->dtype, ft_at(out, i), x + c->a[2].s->f * y);
	}
	return 0;
}

FOP(Add) = {.check = add_check, .run = add_run};
