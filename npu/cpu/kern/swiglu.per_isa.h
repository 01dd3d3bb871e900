// SwiGLU for one instruction set.

#define TYPED "swiglu.per_type.h"
#include "types.h"

static int ISA(swiglu)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(swiglu_range), c);
	return 0;
}

static int ISA(swiglu_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(swiglu_bwd_range), c);
	return 0;
}
