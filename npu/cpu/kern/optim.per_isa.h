// Optimizers over flat float32 memory for one instruction set. hyper is read when the kernel runs. Ranges count blocks of 1024 elements.
#define E f32
#define EL float
#include "type.h"
#define RANGE                                                                                \
	const kern_cmd *c = ctx;                                                                 \
	const float *h = c->p[0];                                                                \
	int64_t at = lo * 1024, m = (hi * 1024 < c->n[0] ? hi * 1024 : c->n[0]) - at;
#define EACH(BODY)                                                                           \
	do {                                                                                     \
		int64_t i = 0;                                                                       \
		for (; i + VL <= m; i += VL) {                                                       \
			enum { n = VL };                                                                 \
			BODY                                                                             \
		}                                                                                    \
		if (i < m) {                                                                         \
			int n = (int)(m - i);                                                            \
			BODY                                                                             \
		}                                                                                    \
	} while (0)
#define RUN(name)                                                                            \
	static int ISA(name)(kern_cmd *c, int nthreads) {                                        \
		kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, ISA(name##_range), c);                   \
		return 0;                                                                            \
	}

static void ISA(sgd_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	float lr = h[0], gs = h[1], mom = h[2], wd = h[3], damp = 1 - h[4];
	int first = h[5] != 0, nesterov = c->flags & SGD_NESTEROV;
	float *w = (float *)c->p[1] + at, *mo = (float *)c->p[3] + at;
	const float *g = (const float *)c->p[2] + at;
	float coupled = wd, shrink = 1;
	if (c->flags & SGD_DECOUPLED) coupled = 0, shrink = (float)(1 - (double)lr * wd);
	if (!(c->flags & SGD_MOMENTUM)) {
		EACH({
			V x = LD(w + i);
			V d = LD(g + i) * gs + x * coupled;
			ST(w + i, x * shrink - d * lr);
		});
		return;
	}
	// The first step sets m = g, whatever m holds.
	if (first)
		EACH({
			V x = LD(w + i);
			V d = LD(g + i) * gs + x * coupled;
			ST(mo + i, d);
			ST(w + i, x * shrink - (nesterov ? d + d * mom : d) * lr);
		});
	else
		EACH({
			V x = LD(w + i);
			V d = LD(g + i) * gs + x * coupled;
			V t = LD(mo + i) * mom + d * damp;
			ST(mo + i, t);
			ST(w + i, x * shrink - (nesterov ? d + t * mom : t) * lr);
		});
}

static void ISA(adamw_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	float lr = h[0], gs = h[1], b1 = h[2], b2 = h[3], eps = h[4], wd = h[5];
	float a1 = (float)(1 - (double)b1), a2 = (float)(1 - (double)b2), step = (float)((double)lr / h[6]), c2 = (float)(1 / sqrt((double)h[7]));
	float *w = (float *)c->p[1] + at, *mo = (float *)c->p[3] + at, *ve = (float *)c->p[4] + at;
	const float *g = (const float *)c->p[2] + at;
	float coupled = 0, shrink = (float)(1 - (double)lr * wd);
	if (c->flags & ADAM_COUPLED) coupled = wd, shrink = 1;
	EACH({
		V x = LD(w + i);
		V d = LD(g + i) * gs + x * coupled;
		V t = LD(mo + i) * b1 + d * a1;
		V s = LD(ve + i) * b2 + d * d * a2;
		ST(mo + i, t);
		ST(ve + i, s);
		ST(w + i, x * shrink - t * step / (ISA(vsqrt)(s) * c2 + eps));
	});
}

static void ISA(lars_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	float lr = h[0], gs = h[1], mom = h[2], wd = h[3];
	double nw = sqrt(*(const double *)c->p[4]), ng = sqrt(*(const double *)c->p[5]) * fabs((double)gs), local = 1;
	int first = h[6] != 0, nesterov = h[7] != 0;
	if (c->flags & LARS_SKIP)
		wd = 0;
	else if (nw > 0 && ng > 0)
		local = h[4] * nw / (ng + wd * nw + h[5]);
	float k = (float)(local * lr);
	float *w = (float *)c->p[1] + at, *mo = (float *)c->p[3] + at;
	const float *g = (const float *)c->p[2] + at;
	EACH({
		V x = LD(w + i);
		V d = (LD(g + i) * gs + x * wd) * k;
		V t = first ? d : LD(mo + i) * mom + d;
		ST(mo + i, t);
		ST(w + i, x - (nesterov ? d + t * mom : t));
	});
}

// Moments of a block, and what it adds to the sums of squares of weights and steps: two doubles in the workspace. The step itself is not stored: computing it
// again from w, m and v moves as many bytes as writing and reading it.
#define LAMB_STEP(x, m, v) ((m) * r1 / (ISA(vsqrt)(v) * r2 + eps) + (x) * wd)
static void ISA(lamb_moments_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	const float *h = c->p[0];
	float gs = h[1], b1 = h[2], b2 = h[3], eps = h[4], wd = h[5], a1 = (float)(1 - (double)b1), a2 = (float)(1 - (double)b2);
	float r1 = (float)(1 / (double)h[6]), r2 = (float)(1 / sqrt((double)h[7]));
	double *sums = c->ws;
	for (int64_t b = lo; b < hi; b++) {
		int64_t at = b * 1024, m = c->n[0] - at < 1024 ? c->n[0] - at : 1024;
		const float *w = (const float *)c->p[1] + at, *g = (const float *)c->p[2] + at;
		float *mo = (float *)c->p[3] + at, *ve = (float *)c->p[4] + at;
		V sw = {0}, su = {0};
		EACH({
			V x = LD(w + i);
			V d = LD(g + i) * gs;
			V t = LD(mo + i) * b1 + d * a1;
			V s = LD(ve + i) * b2 + d * d * a2;
			ST(mo + i, t);
			ST(ve + i, s);
			V u = LAMB_STEP(x, t, s);
			sw += x * x; /* what lies beyond the end is 0 in all four */
			su += u * u;
		});
		sums[2 * b] = ISA(vsum)(sw), sums[2 * b + 1] = ISA(vsum)(su);
	}
}

static int ISA(lamb_moments)(kern_cmd *c, int nthreads) {
	int64_t blocks = (c->n[0] + 1023) / 1024;
	kern_for(nthreads, blocks, 1024, ISA(lamb_moments_range), c);
	const double *sums = c->ws;
	double *s = c->p[5], sw = 0, su = 0;
	for (int64_t b = 0; b < blocks; b++) sw += sums[2 * b], su += sums[2 * b + 1];
	s[0] = sw, s[1] = su;
	return 0;
}

static void ISA(lamb_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	float eps = h[4], wd = h[5], r1 = (float)(1 / (double)h[6]), r2 = (float)(1 / sqrt((double)h[7]));
	const double *sq = c->p[4];
	double trust = sq[0] > 0 && sq[1] > 0 ? sqrt(sq[0]) / sqrt(sq[1]) : 1;
	if ((c->flags & LAMB_CLIP) && trust > 1) trust = 1;
	float k = (float)(h[0] * trust);
	float *w = (float *)c->p[1] + at;
	const float *mo = (const float *)c->p[2] + at, *ve = (const float *)c->p[3] + at;
	EACH({
		V x = LD(w + i);
		V t = LD(mo + i);
		V s = LD(ve + i);
		ST(w + i, x - LAMB_STEP(x, t, s) * k);
	});
}
#undef LAMB_STEP

static void ISA(scale_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	float k = h[0];
	const float *x = (const float *)c->p[1] + at;
	float *y = (float *)c->p[2] + at;
	EACH({ ST(y + i, LD(x + i) * k); });
}

static void ISA(ema_range)(void *ctx, int64_t lo, int64_t hi) {
	RANGE
	float decay = h[0], rest = h[1];
	float *a = (float *)c->p[1] + at;
	const float *x = (const float *)c->p[2] + at;
	EACH({ ST(a + i, LD(a + i) * decay + LD(x + i) * rest); });
}

// Sum of squares: float32 within 1024 elements, float64 between blocks, which are added in order at the end. The workspace holds two
// doubles a block.
static void ISA(sumsq_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	double *sums = c->ws;
	for (int64_t b = lo; b < hi; b++) {
		const float *g = (const float *)c->p[0] + b * 1024;
		int64_t m = c->n[0] - b * 1024 < 1024 ? c->n[0] - b * 1024 : 1024;
		V s[4] = {0};
		I bad = {0};
#define BODY(R, N, i)                                                     \
	{                                                                     \
		int n = N;                                                        \
		UNROLL for (int u = 0; u < R; u++) {                              \
			V t = LD(g + (i) + u * VL);                                   \
			s[u] += t * t;                                                \
			bad -= ~(ISA(vabs)(t) < INFINITY); /* true is -1 */                    \
		}                                                                 \
	}
		SPAN(m, BODY);
#undef BODY
		sums[2 * b] = ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
		int64_t k = 0;
		for (int i = 0; i < VL; i++) k += bad[i];
		sums[2 * b + 1] = (double)k;
	}
}

static int ISA(sumsq)(kern_cmd *c, int nthreads) {
	int64_t blocks = (c->n[0] + 1023) / 1024;
	kern_for(nthreads, blocks, 1024, ISA(sumsq_range), c);
	const double *sums = c->ws;
	double *s = c->p[1], t = 0, bad = 0;
	for (int64_t b = 0; b < blocks; b++) t += sums[2 * b], bad += sums[2 * b + 1];
	s[0] += t, s[1] += bad;
	return 0;
}

RUN(sgd)
RUN(adamw)
RUN(lars)
RUN(lamb)
RUN(scale)
RUN(ema)
#undef RUN
#undef EACH
#undef RANGE
#undef E
#undef EL
