// RMSNorm for one instruction set and element type.
#include "type.h"

// x, w, res or null, y, rstd or null, sum or null. A row is read from memory once; the second pass over it finds it in the cache.
// y and sum never share memory, so the second pass may read sum, or, if sum is null, x and res, which y may overwrite on the way.
static void FN(rmsnorm_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t d = c->n[1];
	const float *w = c->p[1];
	float *rstds = c->p[4];
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * d, *res = c->p[2] ? (const EL *)c->p[2] + r * d : 0;
		EL *y = (EL *)c->p[3] + r * d, *sum = c->p[5] ? (EL *)c->p[5] + r * d : 0;
		V q[4] = {0};
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V v = LD(x + (i) + u * VL);                                            \
			if (res) {                                                             \
				v = FN(round)(v + LD(res + (i) + u * VL));                         \
				if (sum) ST(sum + (i) + u * VL, v);                                \
			}                                                                      \
			q[u] += v * v;                                                         \
		}                                                                          \
	}
		SPAN(d, BODY);
#undef BODY
		float rstd = (float)(1 / sqrt((double)ISA(vsum)((q[0] + q[1]) + (q[2] + q[3])) / (double)d + c->f[0]));
		if (rstds) rstds[r] = rstd;
		if (sum) x = sum, res = 0;
#define BODY(R, N, i)                                                                                  \
	{                                                                                                  \
		int n = N;                                                                                     \
		UNROLL for (int u = 0; u < R; u++) {                                                           \
			V v = LD(x + (i) + u * VL), g = n == VL ? ISA(ld_f32)(w + (i) + u * VL) : ISA(ldn_f32)(w + (i) + u * VL, n); \
			if (res) v = FN(round)(v + LD(res + (i) + u * VL));                                        \
			ST(y + (i) + u * VL, v * rstd * g);                                                        \
		}                                                                                              \
	}
		SPAN(d, BODY);
#undef BODY
	}
}

// dy, x, w, rstd, dres or null, dx, dw or null; chunk k stores its part of dw in row k of the workspace.
static void FN(rmsnorm_bwd_chunks)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t rows = c->n[0], d = c->n[1];
	const float *w = c->p[2], *rstds = c->p[3];
	for (int64_t r = lo * RMS_CHUNK; r < hi * RMS_CHUNK && r < rows; r++) {
		const EL *dy = (const EL *)c->p[0] + r * d, *x = (const EL *)c->p[1] + r * d, *dres = c->p[4] ? (const EL *)c->p[4] + r * d : 0;
		EL *dx = (EL *)c->p[5] + r * d;
		float *dw = (float *)c->ws + r / RMS_CHUNK * d;
		int first = r % RMS_CHUNK == 0;
		V q[4] = {0};
#define LDF(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))
#define BODY(R, N, i)                                                                                  \
	{                                                                                                  \
		int n = N;                                                                                     \
		UNROLL for (int u = 0; u < R; u++) q[u] += LD(dy + (i) + u * VL) * LD(x + (i) + u * VL) * LDF(w + (i) + u * VL); \
	}
		SPAN(d, BODY);
#undef BODY
		float s = rstds[r], t = (float)((double)s * s * ISA(vsum)((q[0] + q[1]) + (q[2] + q[3])) / (double)d);
#define BODY(R, N, i)                                                                                  \
	{                                                                                                  \
		int n = N;                                                                                     \
		UNROLL for (int u = 0; u < R; u++) {                                                           \
			V g = LD(dy + (i) + u * VL), v = LD(x + (i) + u * VL);                                     \
			V k = (g * LDF(w + (i) + u * VL) - v * t) * s, p = g * v * s;                              \
			float *part = dw + (i) + u * VL;                                                           \
			if (!first) p += LDF(part);                                                                \
			if (dres) k += LD(dres + (i) + u * VL);                                                    \
			ST(dx + (i) + u * VL, k);                                                                  \
			if (n == VL)                                                                               \
				ISA(st_f32)(part, p);                                                                  \
			else                                                                                       \
				ISA(stn_f32)(part, p, n);                                                              \
		}                                                                                              \
	}
		SPAN(d, BODY);
#undef BODY
#undef LDF
	}
}
