// LayerNorm for one instruction set and element type.
#include "type.h"

#define LDF(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))
#define STF(p, v)                                                                  \
	do {                                                                           \
		if (n == VL)                                                               \
			ISA(st_f32)(p, v);                                                     \
		else                                                                       \
			ISA(stn_f32)(p, v, n);                                                 \
	} while (0)

// x, w, b, res or null, y, mean or null, rstd or null, sum or null. A row is read from memory once; the other passes over it find it in the cache: the
// variance is of differences from the mean, because the difference of two sums of squares would lose digits. y and sum never share memory, so the later
// passes may read sum, or, if sum is null, x and res, which y may overwrite on the way.
static void FN(layernorm_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t d = c->n[1];
	const float *w = c->p[1], *b = c->p[2];
	float *means = c->p[5], *rstds = c->p[6];
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * d, *res = c->p[3] ? (const EL *)c->p[3] + r * d : 0;
		EL *y = (EL *)c->p[4] + r * d, *sum = c->p[7] ? (EL *)c->p[7] + r * d : 0;
		V q[4] = {0}, s[4] = {0};
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V v = LD(x + (i) + u * VL);                                            \
			if (res) {                                                             \
				v = FN(round)(v + LD(res + (i) + u * VL));                         \
				if (sum) ST(sum + (i) + u * VL, v);                                \
			}                                                                      \
			q[u] += v;                                                             \
		}                                                                          \
	}
		SPAN(d, BODY);
#undef BODY
		if (sum) x = sum, res = 0;
		float mean = (float)((double)ISA(vsum)((q[0] + q[1]) + (q[2] + q[3])) / (double)d);
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V v = LD(x + (i) + u * VL);                                            \
			if (res) v = FN(round)(v + LD(res + (i) + u * VL));                    \
			v = ISA(keep)(v - mean, n);                                            \
			s[u] += v * v;                                                         \
		}                                                                          \
	}
		SPAN(d, BODY);
#undef BODY
		float rstd = (float)(1 / sqrt((double)ISA(vsum)((s[0] + s[1]) + (s[2] + s[3])) / (double)d + c->f[0]));
		if (means) means[r] = mean;
		if (rstds) rstds[r] = rstd;
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V v = LD(x + (i) + u * VL);                                            \
			if (res) v = FN(round)(v + LD(res + (i) + u * VL));                    \
			ST(y + (i) + u * VL, (v - mean) * rstd * LDF(w + (i) + u * VL) + LDF(b + (i) + u * VL)); \
		}                                                                          \
	}
		SPAN(d, BODY);
#undef BODY
	}
}

// dy, x, w, mean, rstd, dres or null, dx, dw or null, db or null; chunk k stores its parts of dw and db in rows 2k and 2k+1 of the workspace.
static void FN(layernorm_bwd_chunks)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t rows = c->n[0], d = c->n[1];
	const float *w = c->p[2], *means = c->p[3], *rstds = c->p[4];
	for (int64_t r = lo * LN_CHUNK; r < hi * LN_CHUNK && r < rows; r++) {
		const EL *dy = (const EL *)c->p[0] + r * d, *x = (const EL *)c->p[1] + r * d, *dres = c->p[5] ? (const EL *)c->p[5] + r * d : 0;
		EL *dx = (EL *)c->p[6] + r * d;
		float *dw = (float *)c->ws + r / LN_CHUNK * 2 * d, *db = dw + d, mean = means[r], rstd = rstds[r];
		int first = r % LN_CHUNK == 0;
		V q[4] = {0}, s[4] = {0};
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V g = LD(dy + (i) + u * VL) * LDF(w + (i) + u * VL);                   \
			q[u] += g;                                                             \
			s[u] += g * ((LD(x + (i) + u * VL) - mean) * rstd);                    \
		}                                                                          \
	}
		SPAN(d, BODY);
#undef BODY
		float one = (float)((double)ISA(vsum)((q[0] + q[1]) + (q[2] + q[3])) / (double)d);
		float two = (float)((double)ISA(vsum)((s[0] + s[1]) + (s[2] + s[3])) / (double)d);
#define BODY(R, N, i)                                                              \
	{                                                                              \
		int n = N;                                                                 \
		UNROLL for (int u = 0; u < R; u++) {                                       \
			V g = LD(dy + (i) + u * VL), v = (LD(x + (i) + u * VL) - mean) * rstd; \
			V k = (g * LDF(w + (i) + u * VL) - one - v * two) * rstd, p = g * v;   \
			if (dres) k += LD(dres + (i) + u * VL);                                \
			if (!first) {                                                          \
				p += LDF(dw + (i) + u * VL);                                       \
				g += LDF(db + (i) + u * VL);                                       \
			}                                                                      \
			ST(dx + (i) + u * VL, k);                                              \
			STF(dw + (i) + u * VL, p);                                             \
			STF(db + (i) + u * VL, g);                                             \
		}                                                                          \
	}
		SPAN(d, BODY);
#undef BODY
	}
}
#undef LDF
#undef STF
