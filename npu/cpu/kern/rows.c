//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "rows.per_isa.h"
#include "kern.h"

// Labels are checked before anything is written. n: rows, classes, ignore_index.
static int bad_label(kern_cmd *c, const int32_t *labels) {
	for (int64_t r = 0; r < c->n[0]; r++)
		if (labels[r] != c->n[2] && (labels[r] < 0 || labels[r] >= c->n[1]))
			return kern_fail(c, "row %lld: label %d outside 0…%lld\n"
				"hint: the data set has more classes than the model, or the label should be ignore_index (%lld)",
				(long long)r, labels[r], (long long)c->n[1] - 1, (long long)c->n[2]);
	return 0;
}
#include "isa.h"

TABLE(softmax);
TABLE(softmax_bwd);
TABLE(cross_entropy);
TABLE(cross_entropy_bwd);
TABLE(soft_ce);
TABLE(soft_ce_bwd);
TABLE(topk);
