// Random numbers: a function of seed, offset and position. The bits are the fake's own, as the real device's are its own.
#include "op.h"

#include <math.h>

static uint64_t bits(uint64_t seed, uint64_t offset, int64_t i) {
	uint64_t state = seed ^ (offset + 1) * 0xd1342543de82ef95 ^ ((uint64_t)i << 1) * 0x9e3779b97f4a7c15;
	fake_random(&state);
	return fake_random(&state);
}

static double unit(uint64_t v) { return (double)(v >> 11) * 0x1p-53; }

static int mask_check(const fcall *c, char *err, size_t n, bool tensors) {
	CK(k);
	const farray *shape = ck_array(&k, 0, "shape", 0, FAKE_DIMS);
	ft *out = ck_t(&k, tensors ? 6 : 5, "out", D(U8));
	if (k.rc) return k.rc;
	int64_t count = 1;
	for (int64_t i = 0; i < shape->n; i++) {
		ck_between(&k, "shape", shape->i[i], 0, INT64_MAX);
		count *= shape->i[i];
	}
	const int64_t want[1] = {(count + 127) / 128 * 16};
	ck_shape(&k, out, "out", 1, want);
	if (!(c->a[1].f >= 0 && c->a[1].f <= 1)) ck_fail(&k, ACLNN_PARAM, "prob is %g, should be in [0, 1].", c->a[1].f);
	int64_t dtype = c->a[tensors ? 5 : 4].i;
	if (!in_set(D_FLOAT, (int)dtype)) ck_fail(&k, ACLNN_PARAM, "probDataType is %lld, should be a float.", (long long)dtype);
	for (int i = 2; tensors && i < 4; i++) {
		ft *t = ck_t(&k, i, i == 2 ? "seed" : "offset", D(I64) | D(I32));
		if (t && !k.rc && ft_numel(t) != 1) ck_fail(&k, ACLNN_PARAM, "%s should have 1 element.", i == 2 ? "seed" : "offset");
	}
	return k.rc;
}

// bit_mask writes a bit per element, 1 to keep, eight to a byte from the lowest.
static void bit_mask(const farray *shape, double zero, uint64_t seed, uint64_t offset, const ft *out) {
	int64_t count = 1, bytes = out->dims[0];
	for (int64_t i = 0; i < shape->n; i++) count *= shape->i[i];
	for (int64_t b = 0; b < bytes; b++) {
		unsigned v = 0;
		for (int64_t j = b * 8; j < b * 8 + 8 && j < count; j++) v |= (unsigned)(unit(bits(seed, offset, j)) >= zero) << (j % 8);
		out->base[ft_at(out, b)] = (char)v;
	}
}

static int DropoutGenMaskV2_check(const fcall *c, char *err, size_t n) { return mask_check(c, err, n, false); }
static int DropoutGenMaskV2_run(const fcall *c) {
	bit_mask(c->a[0].a, c->a[1].f, (uint64_t)c->a[2].i, (uint64_t)c->a[3].i, c->a[5].t);
	return 0;
}
FOP(DropoutGenMaskV2) = {.check = DropoutGenMaskV2_check, .run = DropoutGenMaskV2_run};

static int DropoutGenMaskV2Tensor_check(const fcall *c, char *err, size_t n) { return mask_check(c, err, n, true); }
static int DropoutGenMaskV2Tensor_run(const fcall *c) {
	int64_t *seed = pack_i(c->a[2].t), *offset = pack_i(c->a[3].t);
	bit_mask(c->a[0].a, c->a[1].f, (uint64_t)*seed, (uint64_t)(*offset + c->a[4].i), c->a[6].t);
	free(seed), free(offset);
	return 0;
}
FOP(DropoutGenMaskV2Tensor) = {.check = DropoutGenMaskV2Tensor_check, .run = DropoutGenMaskV2Tensor_run};

static int DropoutDoMask_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT), *m = ck_t(&k, 1, "mask", D(U8)), *y = ck_t(&k, 3, "out", D_FLOAT);
	if (k.rc) return k.rc;
	ck_rank(&k, m, "mask", 1, 1);
	if (!k.rc && m->dims[0] < (ft_numel(x) + 127) / 128 * 16) ck_fail(&k, ACLNN_PARAM, "mask has %lld bytes, too few.", (long long)m->dims[0]);
	ck_same(&k, x, "self", y, "out");
	ck_alike(&k, x, "self", y, "out");
	if (!(c->a[2].f >= 0 && c->a[2].f <= 1)) ck_fail(&k, ACLNN_PARAM, "prob is %g, should be in [0, 1].", c->a[2].f);
	return k.rc;
}
static int DropoutDoMask_run(const fcall *c) {
	const ft *x = c->a[0].t, *m = c->a[1].t;
	float *v = pack_f(x), keep = (float)(1 - c->a[2].f);
	for (int64_t i = 0; i < ft_numel(x); i++) v[i] = m->base[ft_at(m, i / 8)] >> (i % 8) & 1 ? v[i] / keep : 0;
	unpack_f(c->a[3].t, v);
	free(v);
	return 0;
}
FOP(DropoutDoMask) = {.check = DropoutDoMask_check, .run = DropoutDoMask_run};

static int InplaceUniform_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_t(&k, 0, "selfRef", D_FLOAT64 | D_INT);
	if (!k.rc && !(c->a[1].f <= c->a[2].f)) ck_fail(&k, ACLNN_PARAM, "from is %g, to is %g.", c->a[1].f, c->a[2].f);
	return k.rc;
}
static int InplaceUniform_run(const fcall *c) {
	const ft *x = c->a[0].t;
	int64_t n = ft_numel(x);
	double *v = room(n, 8);
	for (int64_t i = 0; i < n; i++) v[i] = c->a[1].f + (c->a[2].f - c->a[1].f) * unit(bits((uint64_t)c->a[3].i, (uint64_t)c->a[4].i, i));
	unpack_d(x, v);
	free(v);
	return 0;
}
FOP(InplaceUniform) = {.check = InplaceUniform_check, .run = InplaceUniform_run};

static int InplaceNormal_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_t(&k, 0, "selfRef", D_FLOAT64);
	if (!k.rc && !(c->a[2].f >= 0)) ck_fail(&k, ACLNN_PARAM, "std is %g, should not be negative.", c->a[2].f);
	return k.rc;
}
static int InplaceNormal_run(const fcall *c) {
	const ft *x = c->a[0].t;
	int64_t n = ft_numel(x);
	double *v = room(n, 8);
	for (int64_t i = 0; i < n; i++) {
		double a = 1 - unit(bits((uint64_t)c->a[3].i, (uint64_t)c->a[4].i, 2 * i)), b = unit(bits((uint64_t)c->a[3].i, (uint64_t)c->a[4].i, 2 * i + 1));
		v[i] = c->a[1].f + c->a[2].f * sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
	}
	unpack_d(x, v);
	free(v);
	return 0;
}
FOP(InplaceNormal) = {.check = InplaceNormal_check, .run = InplaceNormal_run};
