// Ops on rows of classes, for one instruction set: the two element types, and the code that combines rows.
#define TYPED "rows.per_type.h"
#include "types.h"

static int ISA(softmax)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(softmax_rows), c);
	return 0;
}

static int ISA(softmax_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(softmax_bwd_rows), c);
	return 0;
}

// cross_entropy: logits, labels, loss, count, lse. The workspace holds the loss of each row.
static int ISA(cross_entropy)(kern_cmd *c, int nthreads) {
	const int32_t *labels = c->p[1];
	if (bad_label(c, labels)) return 1;
	kern_for(nthreads, c->n[0], c->n[1], PICK(ce_rows), c);
	const double *rows = c->ws;
	double loss = 0, count = 0;
	for (int64_t r = 0; r < c->n[0]; r++)
		if (labels[r] != c->n[2]) loss += rows[r], count++;
	*(float *)c->p[2] = (float)loss;
	if (c->p[3]) *(float *)c->p[3] = (float)count;
	return 0;
}

// cross_entropy_bwd: logits, labels, lse, dloss, dlogits.
static int ISA(cross_entropy_bwd)(kern_cmd *c, int nthreads) {
	if (bad_label(c, c->p[1])) return 1;
	kern_for(nthreads, c->n[0], c->n[1], PICK(ce_bwd_rows), c);
	return 0;
}

// soft_ce: logits, target, loss, count, lse. The workspace holds the loss of each row and the sum of its targets.
static int ISA(soft_ce)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(soft_ce_rows), c);
	const double *rows = c->ws;
	double loss = 0, count = 0;
	for (int64_t r = 0; r < c->n[0]; r++) loss += rows[2 * r], count += rows[2 * r + 1] != 0;
	*(float *)c->p[2] = (float)loss;
	if (c->p[3]) *(float *)c->p[3] = (float)count;
	return 0;
}

// soft_ce_bwd: logits, target, lse, dloss, dlogits.
static int ISA(soft_ce_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(soft_ce_bwd_rows), c);
	return 0;
}

// topk: logits, labels, correct; n[3] is k. The workspace holds 1 for each row that is correct.
static int ISA(topk)(kern_cmd *c, int nthreads) {
	if (bad_label(c, c->p[1])) return 1;
	kern_for(nthreads, c->n[0], c->n[1], PICK(topk_rows), c);
	const double *rows = c->ws;
	double correct = 0;
	for (int64_t r = 0; r < c->n[0]; r++) correct += rows[r];
	*(float *)c->p[2] = (float)correct;
	return 0;
}
