// Global average pooling for one instruction set. n: images, channels, plane, layout. A group of channels of one image is one unit of work.
#define TYPED "pool.per_type.h"
#include "types.h"

static int ISA(gap)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0] * gap_groups(c), gap_width(c) * c->n[2], PICK(gap_range), c);
	return 0;
}

static int ISA(gap_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0] * gap_groups(c), gap_width(c) * c->n[2], PICK(gap_bwd_range), c);
	return 0;
}
