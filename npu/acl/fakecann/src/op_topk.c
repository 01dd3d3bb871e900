// Topk: the k largest or smallest of each line, ties by the lower index.
#include "op.h"

static int Topk_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT64 | D_INT), *v = ck_t(&k, 5, "valuesOut", D_FLOAT64 | D_INT), *idx = ck_t(&k, 6, "indicesOut", D(I64));
	int d = ck_dim(&k, x, "dim", c->a[2].i);
	if (k.rc) return k.rc;
	int64_t want[FAKE_DIMS];
	ck_between(&k, "k", c->a[1].i, 0, x->nd ? x->dims[d] : 1);
	memcpy(want, x->dims, sizeof want);
	want[d] = c->a[1].i;
	ck_shape(&k, v, "valuesOut", x->nd, want);
	ck_shape(&k, idx, "indicesOut", x->nd, want);
	ck_alike(&k, x, "self", v, "valuesOut");
	return k.rc;
}

static int Topk_run(const fcall *c) {
	const int64_t dim = c->a[2].i, take = c->a[1].i;
	lines l = lines_of(c->a[0].t, &dim, 1, true), lv = lines_of(c->a[5].t, &dim, 1, true), li = lines_of(c->a[6].t, &dim, 1, true);
	double *v = pack_d(&l.view), *o = room(l.outer * take, 8);
	int64_t *at = room(l.outer * take, 8);
	bool *used = room(l.inner, 1);
	for (int64_t i = 0; i < l.outer; i++) {
		const double *row = v + i * l.inner;
		memset(used, 0, (size_t)l.inner);
		for (int64_t j = 0; j < take; j++) {
			int64_t best = -1;
			for (int64_t q = 0; q < l.inner; q++) {
				if (!used[q] && (best < 0 || (c->a[3].i ? row[q] > row[best] : row[q] < row[best]))) best = q;
			}
			used[best] = true;
			o[i * take + j] = row[best];
			at[i * take + j] = best;
		}
	}
	unpack_d(&lv.view, o);
	unpack_i(&li.view, at);
	free(v), free(o), free(at), free(used);
	return 0;
}

FOP(Topk) = {.check = Topk_check, .run = Topk_run};
