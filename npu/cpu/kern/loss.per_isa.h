// Losses of single elements, for one instruction set. Arguments: x, target, weights of rows or null; then loss and count, or dloss and the gradient.

// log(1 + e) for 0 ≤ e ≤ 1: 2·atanh(s), s = e/(2 + e) ≤ 1/3, by its series; the next term is 2e-8 of the result.
INLINE V ISA(vlog1p)(V e) {
	V s = e / (2 + e), q = s * s, p = ISA(splat)(1.0f / 13);
	p = p * q + 1.0f / 11;
	p = p * q + 1.0f / 9;
	p = p * q + 1.0f / 7;
	p = p * q + 1.0f / 5;
	p = p * q + 1.0f / 3;
	return 2 * s * (p * q + 1);
}

#define TYPED "loss.per_type.h"
#include "types.h"

// The results of rows, which the workspace holds, are added in order.
static int ISA(rows_sum)(kern_cmd *c) {
	const double *rows = c->ws;
	const float *weight = c->p[2];
	double loss = 0, count = 0;
	for (int64_t r = 0; r < c->n[0]; r++) loss += rows[r], count += weight ? weight[r] : 1;
	*(float *)c->p[3] = (float)loss;
	if (c->p[4]) *(float *)c->p[4] = (float)count;
	return 0;
}

static int ISA(bce)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], 2 * c->n[1], PICK(bce_rows), c);
	return ISA(rows_sum)(c);
}

static int ISA(bce_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], 2 * c->n[1], PICK(bce_bwd_rows), c);
	return 0;
}

static int ISA(mse)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(mse_rows), c);
	return ISA(rows_sum)(c);
}

static int ISA(mse_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(mse_bwd_rows), c);
	return 0;
}

// one_hot: labels, y, rows or null. n: rows, classes, ignore_index. f: on, off.
static int ISA(one_hot)(kern_cmd *c, int nthreads) {
	const int32_t *labels = c->p[0];
	const float *weights = c->p[LOSS_TABLE];
	float *y = c->p[1], *rows = c->p[2], on = (float)c->f[0], off = (float)c->f[1];
	int64_t m = c->n[1];
	for (int64_t r = 0; r < c->n[0]; r++)
		if (labels[r] != c->n[2] && (labels[r] < 0 || labels[r] >= m))
			return kern_fail(c, "row %lld: label %d outside 0…%lld\n"
				"hint: the data set has more classes than the model, or the label should be ignore_index (%lld)",
				(long long)r, labels[r], (long long)m - 1, (long long)c->n[2]);
	for (int64_t r = 0; r < c->n[0]; r++, y += m) {
		int64_t at = labels[r];
		if (at == c->n[2]) {
			memset(y, 0, (size_t)m * sizeof *y);
			if (rows) rows[r] = 0;
			continue;
		}
		for (int64_t j = 0; j < m; j++) y[j] = weights ? off * weights[j] : off;
		y[at] = weights ? on * weights[at] : on;
		if (rows) rows[r] = weights ? weights[at] : 1;
	}
	return 0;
}
