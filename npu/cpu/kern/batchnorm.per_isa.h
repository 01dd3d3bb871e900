// Batch normalisation for one instruction set: the two element types.
#define TYPED "batchnorm.per_type.h"
#include "types.h"

static int ISA(bn_fwd)(kern_cmd *c, int nthreads) {
	int bf16 = c->dt == KERN_BF16;
	bn_pass p = {.cmd = c, .first = bf16 ? ISA(bn_stats_bf16) : ISA(bn_stats_f32), .merge = bn_merge_fwd, .second = bf16 ? ISA(bn_norm_bf16) : ISA(bn_norm_f32)};
	bn_two_pass(&p, nthreads);
	return 0;
}

static int ISA(bn_bwd)(kern_cmd *c, int nthreads) {
	int bf16 = c->dt == KERN_BF16;
	bn_pass p = {.cmd = c, .first = bf16 ? ISA(bn_dots_bf16) : ISA(bn_dots_f32), .merge = bn_merge_bwd, .second = bf16 ? ISA(bn_dx_bf16) : ISA(bn_dx_f32)};
	bn_two_pass(&p, nthreads);
	return 0;
}

static void ISA(bn_infer_range)(void *ctx, int64_t lo, int64_t hi) {
	const bn_pass *p = ctx;
	for (int64_t i = lo; i < hi; i++) p->second(p, i / p->t.items, i % p->t.items);
}

static int ISA(bn_infer)(kern_cmd *c, int nthreads) {
	const float *gamma = c->p[1], *beta = c->p[2], *mean = c->p[3], *var = c->p[4];
	bn_pass p = {.cmd = c, .t = bn_cut_of(c), .second = PICK(bn_norm)};
	p.par[0] = c->ws;
	p.par[1] = p.par[0] + p.t.c + 16;
	for (int64_t i = 0; i < p.t.c; i++) {
		double a = gamma[i] / sqrt(var[i] + c->f[0]);
		p.par[0][i] = (float)a;
		p.par[1][i] = (float)(beta[i] - mean[i] * a);
	}
	kern_for(nthreads, p.t.groups * p.t.items, p.t.cut * p.t.width, ISA(bn_infer_range), &p);
	return 0;
}
