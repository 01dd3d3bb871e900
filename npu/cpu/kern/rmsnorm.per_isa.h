// RMSNorm for one instruction set. n: rows, elements of a row.

#define TYPED "rmsnorm.per_type.h"
#include "types.h"

static int ISA(rmsnorm)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(rmsnorm_rows), c);
	return 0;
}

// Sets columns lo·16… of dw to the sums of the chunks, in order.
static void ISA(rmsnorm_merge)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t d = c->n[1], chunks = (c->n[0] + RMS_CHUNK - 1) / RMS_CHUNK;
	float *dw = c->p[6];
	for (int64_t i = lo * 16; i < hi * 16; i += 16) {
		int64_t m = d - i < 16 ? d - i : 16;
		double t[16] = {0};
		for (int64_t k = 0; k < chunks; k++) {
			const float *part = (const float *)c->ws + k * d + i;
			for (int64_t j = 0; j < m; j++) t[j] += part[j];
		}
		for (int64_t j = 0; j < m; j++) dw[i + j] = (float)t[j];
	}
}

static int ISA(rmsnorm_bwd)(kern_cmd *c, int nthreads) {
	int64_t chunks = (c->n[0] + RMS_CHUNK - 1) / RMS_CHUNK;
	kern_for(nthreads, chunks, RMS_CHUNK * c->n[1], PICK(rmsnorm_bwd_chunks), c);
	if (c->p[6]) kern_for(nthreads, (c->n[1] + 15) / 16, 16 * chunks, ISA(rmsnorm_merge), c);
	return 0;
}
