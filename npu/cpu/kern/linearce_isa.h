// Steps of cross-entropy with its linear layer, for one instruction set: the two element types, and what joins them.
#define E f32
#define EL float
#include "linearce_type.h"
#undef E
#undef EL
#define E bf16
#define EL uint16_t
#include "linearce_type.h"
#undef E
#undef EL

#define PICK(name) (c->dt == KERN_BF16 ? CAT(CAT(name, _), ISA(bf16)) : CAT(CAT(name, _), ISA(f32)))

static int ISA(lce_tile)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_tile_rows), c);
	return 0;
}

static int ISA(lce_scale)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_scale_rows), c);
	return 0;
}

static int ISA(lce_dx)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_dx_rows), c);
	return 0;
}

static int ISA(lce_hits)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[1], c->n[0], PICK(lce_hits_columns), c);
	return 0;
}

static int ISA(lce_prob)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_prob_rows), c);
	return 0;
}
#undef PICK
