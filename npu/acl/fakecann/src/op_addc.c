// Addcmul and Addcdiv: self + value·tensor1·tensor2 (or tensor1/tensor2).
#include "op_ew.h"

EW(addcmul, 3, a + p0 * b * c, a + p0 * b * c, NONE)
EW(addcdiv, 3, a + p0 * b / c, a + p0 * b / c, NONE)

static int addc_check(const fcall *c, char *err, size_t n, int out) {
	CK(k);
	const char *name = out ? "out" : "selfRef";
	const ft *in[3];
	in[0] = ck_t(&k, 0, out ? "self" : "selfRef", D_FLOAT);
	in[1] = ck_t(&k, 1, "tensor1", D_FLOAT);
	in[2] = ck_t(&k, 2, "tensor2", D_FLOAT);
	ck_s(&k, 3, "value");
	ft *y = ck_t(&k, out, name, D_FLOAT);
	if (k.rc) return k.rc;
	int dtype = ck_broadcast(&k, 3, in, y, name);
	ck_castable(&k, dtype, y, name);
	return k.rc;
}

static int addc_run(const fcall *c, int out, const ew *k) {
	const ft *in[3] = {c->a[0].t, c->a[1].t, c->a[2].t};
	const double p[2] = {c->a[3].s->f, 0};
	ew_run(c->a[out].t, 3, in, promote(promote(in[0]->dtype, in[1]->dtype), in[2]->dtype), k, p);
	return 0;
}

#define ADDC(name, kernel, out) \
	static int name##_check(const fcall *c, char *err, size_t n) { return addc_check(c, err, n, out); } \
	static int name##_run(const fcall *c) { return addc_run(c, out, &kernel##_k); } \
	FOP(name) = {.check = name##_check, .run = name##_run};

ADDC(Addcmul, addcmul, 4)
ADDC(InplaceAddcmul, addcmul, 0)
ADDC(Addcdiv, addcdiv, 4)
ADDC(InplaceAddcdiv, addcdiv, 0)
