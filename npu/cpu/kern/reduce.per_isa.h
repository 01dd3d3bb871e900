// Reductions of plain tensors for one instruction set.
//
// The tensor has alternating kept and reduced dims (adjacent dims of one sort are merged). v holds the sizes and strides of the kept dims, then those of the
// reduced ones; n[2] and n[3] are their numbers. If n[4], the innermost dim is kept, and the last of the kept dims.
// n[0]: function, n[1]: divisor of the mean, n[5]: elements of x.
#define TYPED "reduce.per_type.h"
#include "types.h"

static int ISA(reduce)(kern_cmd *c, int nthreads) {
	int64_t work = 1;
	for (int64_t d = 0; d < c->n[2]; d++) work *= d == c->n[2] - 1 && c->n[4] ? (c->v[2 * d] + 255) / 256 : c->v[2 * d];
	kern_for(nthreads, work, c->n[5] / work, PICK(reduce_range), c);
	return 0;
}
