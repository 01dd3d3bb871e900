// LayerNorm for one instruction set. n: rows, elements of a row.

#define TYPED "layernorm.per_type.h"
#include "types.h"

static int ISA(layernorm)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(layernorm_rows), c);
	return 0;
}

// Sets columns lo·16… of dw, and behind them of db, to the sums of the chunks, in order.
static void ISA(layernorm_merge)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t d = c->n[1], chunks = (c->n[0] + LN_CHUNK - 1) / LN_CHUNK, blocks = (d + 15) / 16;
	for (int64_t b = lo; b < hi; b++) {
		float *to = c->p[b < blocks ? 7 : 8];
		int64_t i = b % blocks * 16, m = d - i < 16 ? d - i : 16;
		double t[16] = {0};
		if (!to) continue;
		for (int64_t k = 0; k < chunks; k++) {
			const float *part = (const float *)c->ws + (2 * k + (b >= blocks)) * d + i;
			for (int64_t j = 0; j < m; j++) t[j] += part[j];
		}
		for (int64_t j = 0; j < m; j++) to[i + j] = (float)t[j];
	}
}

static int ISA(layernorm_bwd)(kern_cmd *c, int nthreads) {
	int64_t chunks = (c->n[0] + LN_CHUNK - 1) / LN_CHUNK;
	kern_for(nthreads, chunks, LN_CHUNK * c->n[1], PICK(layernorm_bwd_chunks), c);
	if (c->p[7] || c->p[8]) kern_for(nthreads, 2 * ((c->n[1] + 15) / 16), 16 * chunks, ISA(layernorm_merge), c);
	return 0;
}
