//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "linearce.per_isa.h"
#include "kern.h"
#include <math.h>

// lce_labels: labels are checked before anything is written. n: rows, classes, ignore_index.
static int lce_labels(kern_cmd *c, int nthreads) {
	(void)nthreads;
	const int32_t *labels = c->p[0];
	for (int64_t r = 0; r < c->n[0]; r++)
		if (labels[r] != c->n[2] && (labels[r] < 0 || labels[r] >= c->n[1]))
			return kern_fail(c, "row %lld: label %d outside 0…%lld\n"
				"hint: the data has more classes than the model, or the label should be ignore_index (%lld)",
				(long long)r, labels[r], (long long)c->n[1] - 1, (long long)c->n[2]);
	return 0;
}

// lce_end: labels, top, sum, at, dloss or null, lse or null, loss f64[rows], whole, hit: the results of rows after their last tile.
// n: rows, _, ignore_index.
static int lce_end(kern_cmd *c, int nthreads) {
	(void)nthreads;
	const int32_t *labels = c->p[0];
	const float *top = c->p[1], *at = c->p[3], *dloss = c->p[4];
	const double *sum = c->p[2];
	float *lse = c->p[5], *whole = c->p[7], *hit = c->p[8];
	double *loss = c->p[6];
	for (int64_t r = 0; r < c->n[0]; r++) {
		int valid = labels[r] != c->n[2];
		double l = top[r] + log(sum[r]);
		if (lse) lse[r] = (float)l;
		loss[r] = valid ? l - at[r] : 0;
		if (!dloss) continue;
		whole[r] = valid ? (float)(*dloss / sum[r]) : 0;
		hit[r] = valid ? (float)(*dloss * expm1(at[r] - l)) : 0;
	}
	return 0;
}

// lce_loss: labels, loss f64[rows], loss, count or null. n: rows, _, ignore_index.
static int lce_loss(kern_cmd *c, int nthreads) {
	(void)nthreads;
	const int32_t *labels = c->p[0];
	const double *rows = c->p[1];
	double loss = 0, count = 0;
	for (int64_t r = 0; r < c->n[0]; r++)
		if (labels[r] != c->n[2]) loss += rows[r], count++;
	*(float *)c->p[2] = (float)loss;
	if (c->p[3]) *(float *)c->p[3] = (float)count;
	return 0;
}
#include "isa.h"

TABLE(lce_tile);
TABLE(lce_scale);
TABLE(lce_dx);
TABLE(lce_hits);
TABLE(lce_prob);
kern_table kern_lce_labels = {lce_labels, lce_labels, lce_labels};
kern_table kern_lce_end = {lce_end, lce_end, lce_end};
kern_table kern_lce_loss = {lce_loss, lce_loss, lce_loss};
