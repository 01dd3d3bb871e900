// Rows of a table by number, and the gradient, for one instruction set. n: ids, rows of the table, bytes of a row (embedding) or its
// elements (embedding_bwd), ids in a sequence.
#define TYPED "embedding.per_type.h"
#include "types.h"

static void ISA(embedding_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	const int32_t *ids = c->p[0];
	int64_t m = c->n[2];
	const char *w = c->p[1];
	char *y = c->p[2];
	for (int64_t r = lo; r < hi; r++) memcpy(y + r * m, w + ids[r] * m, (size_t)m);
}

// embedding: ids, w, y.
static int ISA(embedding)(kern_cmd *c, int nthreads) {
	if (bad_id(c, c->p[0])) return 1;
	kern_for(nthreads, c->n[0], c->n[2] / 4 + 1, ISA(embedding_rows), c);
	return 0;
}

// Sets blocks of 1024 elements of dw to those of acc, or 0.
static void ISA(embedding_start)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t all = c->n[1] * c->n[2], at = lo * 1024, m = (hi * 1024 < all ? hi * 1024 : all) - at;
	float *dw = (float *)c->p[3] + at;
	if (c->p[2])
		memcpy(dw, (const float *)c->p[2] + at, (size_t)m * 4);
	else
		memset(dw, 0, (size_t)m * 4);
}

// embedding_bwd: dy, ids, acc or null, dw. Each thread adds all rows, in order, for its own columns: threads never share a sum, and
// the results do not depend on their number.
static int ISA(embedding_bwd)(kern_cmd *c, int nthreads) {
	if (bad_id(c, c->p[1])) return 1;
	if (c->p[2] != c->p[3]) kern_for(nthreads, (c->n[1] * c->n[2] + 1023) / 1024, 1024, ISA(embedding_start), c);
	kern_for(nthreads, (c->n[2] + 15) / 16, 16 * c->n[0], PICK(embedding_columns), c);
	return 0;
}
