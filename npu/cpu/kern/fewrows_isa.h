// Products of few rows with a matrix for one instruction set: y = a·bᵀ. n: M, K, N. Every row of b is read once, for all rows of a.

// AHEAD is how far, in bytes, a row of b is fetched before its use: the processor's own guess stops at the end of a page.
#define AHEAD 2048

#define E f32
#define EL float
#include "fewrows_type.h"
#undef E
#undef EL
#define E bf16
#define EL uint16_t
#include "fewrows_type.h"
#undef E
#undef EL
#undef AHEAD

// fewrows: a, b, bias or null, y.
static int ISA(fewrows)(kern_cmd *c, int nthreads) {
	if (c->dt == KERN_BF16) {
		const uint16_t *a = c->p[0];
		float *wide = c->ws;
		for (int64_t i = 0; i < c->n[0] * c->n[1]; i++) wide[i] = ISA(ld1_bf16)(a + i);
	}
	kern_for(nthreads, (c->n[2] + 3) / 4, 4 * c->n[1], c->dt == KERN_BF16 ? ISA(few_groups_bf16) : ISA(few_groups_f32), c);
	return 0;
}
