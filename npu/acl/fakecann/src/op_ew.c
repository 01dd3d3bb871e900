#include "op_ew.h"

typedef struct ew_row {
	const ew *k;
	const double *p;
	int nin, dtype, out;
	int in[EW_IN];
} ew_row;

static void ew_rows(void *ctx, char *const *p, const int64_t *st, int64_t n) {
	const ew_row *r = ctx;
	union {
		float f[LOOP_CHUNK];
		double d[LOOP_CHUNK];
		int64_t i[LOOP_CHUNK];
	} in[EW_IN], o;
	if (is_float(r->dtype) && r->dtype != DT_F64) {
		float *v[EW_IN];
		for (int k = 0; k < r->nin; k++) load_f(v[k] = in[k].f, p[k + 1], r->in[k], st[k + 1], n);
		r->k->f(o.f, v, n, r->p);
		if (is_half(r->dtype) && r->out != r->dtype) round_f(o.f, n, r->dtype);
		store_f(p[0], r->out, st[0], n, o.f);
	} else if (r->dtype == DT_F64) {
		double *v[EW_IN];
		for (int k = 0; k < r->nin; k++) load_d(v[k] = in[k].d, p[k + 1], r->in[k], st[k + 1], n);
		r->k->d(o.d, v, n, r->p);
		store_d(p[0], r->out, st[0], n, o.d);
	} else {
		int64_t *v[EW_IN];
		for (int k = 0; k < r->nin; k++) load_i(v[k] = in[k].i, p[k + 1], r->in[k], st[k + 1], n);
		r->k->i(o.i, v, n, r->p);
		store_i(p[0], r->out, st[0], n, o.i);
	}
}

void ew_run(const ft *out, int nin, const ft *const *in, int dtype, const ew *k, const double *p) {
	static const double none[2] = {0, 0};
	loop l;
	ew_row r = {k, p ? p : none, nin, dtype, out->dtype, {0}};
	loop_open(&l, out->dims, out->nd);
	loop_add(&l, out);
	for (int i = 0; i < nin; i++) {
		r.in[i] = in[i]->dtype;
		loop_add(&l, in[i]);
	}
	loop_run(&l, ew_rows, &r);
}

void ck_castable(ck *k, int dtype, const ft *out, const char *name) {
	if (k->rc || !out) return;
	bool bad = (is_float(dtype) && !is_float(out->dtype)) || (out->dtype == DT_BOOL && dtype != DT_BOOL);
	if (bad) ck_fail(k, ACLNN_PARAM, "result type DT_%s can't be cast to the desired output type DT_%s of %s.", dtype_name(dtype),
		dtype_name(out->dtype), name);
}

int ck_broadcast(ck *k, int n, const ft *const *in, const ft *out, const char *name) {
	if (k->rc) return 0;
	int64_t dims[FAKE_DIMS];
	int nd = in[0]->nd, dtype = in[0]->dtype;
	memcpy(dims, in[0]->dims, sizeof dims);
	for (int i = 1; i < n; i++) {
		if (!broadcast(dims, nd, in[i]->dims, in[i]->nd, dims, &nd)) {
			ck_fail(k, ACLNN_PARAM, "input tensors' shapes can not broadcast, see input %d of %s.", i, k->c->name);
			return 0;
		}
		dtype = promote(dtype, in[i]->dtype);
	}
	ck_shape(k, out, name, nd, dims);
	return dtype;
}
