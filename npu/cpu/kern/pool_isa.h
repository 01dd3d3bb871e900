// Global average pooling for one instruction set. n: images, channels, plane, layout. A group of 16 channels of one image is one unit of work.
#define E f32
#define EL float
#include "pool_type.h"
#undef E
#undef EL
#define E bf16
#define EL uint16_t
#include "pool_type.h"
#undef E
#undef EL

static int ISA(gap)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0] * ((c->n[1] + 15) / 16), 16 * c->n[2], c->dt == KERN_BF16 ? ISA(gap_range_bf16) : ISA(gap_range_f32), c);
	return 0;
}

static int ISA(gap_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0] * ((c->n[1] + 15) / 16), 16 * c->n[2], c->dt == KERN_BF16 ? ISA(gap_bwd_range_bf16) : ISA(gap_bwd_range_f32), c);
	return 0;
}
