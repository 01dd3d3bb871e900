// Losses of single elements, for one instruction set and type of x. Targets are float32.
#include "type.h"

#define LDT(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))
// ROWS gives each row its weight, x and target; rows of weight 0 do ELSE instead. PIECES goes through a row in pieces, whose sums are added in float64.
#define ROWS(ELSE)                                                                      \
	const kern_cmd *c = ctx;                                                            \
	int64_t m = c->n[1];                                                                \
	const float *weight = c->p[2];                                                      \
	for (int64_t r = lo; r < hi; r++) {                                                 \
		const EL *x = (const EL *)c->p[0] + r * m;                                      \
		const float *t = (const float *)c->p[1] + r * m;                                \
		float w = weight ? weight[r] : 1;                                               \
		if (w == 0) {                                                                   \
			ELSE;                                                                       \
			continue;                                                                   \
		}
#define PIECE 4096
#define POS(i) (pos ? LDT(pos + (i)) : ISA(splat)((float)c->f[0]))

static void FN(bce_rows)(void *ctx, int64_t lo, int64_t hi) {
	double *rows = ((kern_cmd *)ctx)->ws;
	const float *pos = ((kern_cmd *)ctx)->p[LOSS_TABLE];
	ROWS(rows[r] = 0)
		double sum = 0;
		for (int64_t b = 0; b < m; b += PIECE) {
			V s[4] = {0};
#define BODY(R, N, i)                                                                                        \
	{                                                                                                        \
		int n = N;                                                                                           \
		UNROLL for (int u = 0; u < R; u++) {                                                                 \
			int64_t at = b + (i) + u * VL;                                                                   \
			V v = LD(x + at), p = LDT(t + at), l = ISA(vlog1p)(ISA(vexp)(-ISA(vabs)(v)));                    \
			s[u] += ISA(keep)(POS(at) * p * (l + ISA(vrelu)(-v)) + (1 - p) * (l + ISA(vrelu)(v)), n);        \
		}                                                                                                    \
	}
			SPAN((m - b < PIECE ? m - b : PIECE), BODY);
#undef BODY
			sum += ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
		}
		rows[r] = w * sum;
	}
}

static void FN(bce_bwd_rows)(void *ctx, int64_t lo, int64_t hi) {
	const float *pos = ((kern_cmd *)ctx)->p[LOSS_TABLE];
	float d = *(const float *)((kern_cmd *)ctx)->p[3];
	ROWS(memset((EL *)c->p[4] + r * m, 0, (size_t)m * sizeof(EL)))
		EL *dx = (EL *)c->p[4] + r * m;
		float by = w * d;
#define BODY(R, N, i)                                                                                        \
	{                                                                                                        \
		int n = N;                                                                                           \
		UNROLL for (int u = 0; u < R; u++) {                                                                 \
			int64_t at = (i) + u * VL;                                                                       \
			V one = LDT(t + at), p = POS(at) * one;                                                          \
			ST(dx + at, by * ((p + 1 - one) / (1 + ISA(vexp)(-LD(x + at))) - p));                            \
		}                                                                                                    \
	}
		SPAN(m, BODY);
#undef BODY
	}
}

static void FN(mse_rows)(void *ctx, int64_t lo, int64_t hi) {
	double *rows = ((kern_cmd *)ctx)->ws;
	ROWS(rows[r] = 0)
		double sum = 0;
		for (int64_t b = 0; b < m; b += PIECE) {
			V s[4] = {0};
#define BODY(R, N, i)                                                                                        \
	{                                                                                                        \
		int n = N;                                                                                           \
		UNROLL for (int u = 0; u < R; u++) {                                                                 \
			V e = LD(x + b + (i) + u * VL) - LDT(t + b + (i) + u * VL);                                      \
			s[u] += e * e;                                                                                   \
		}                                                                                                    \
	}
			SPAN((m - b < PIECE ? m - b : PIECE), BODY);
#undef BODY
			sum += ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
		}
		rows[r] = w * sum;
	}
}

static void FN(mse_bwd_rows)(void *ctx, int64_t lo, int64_t hi) {
	float d = *(const float *)((kern_cmd *)ctx)->p[3];
	ROWS(memset((EL *)c->p[4] + r * m, 0, (size_t)m * sizeof(EL)))
		EL *dx = (EL *)c->p[4] + r * m;
		float by = 2 * w * d;
#define BODY(R, N, i)                                                                                        \
	{                                                                                                        \
		int n = N;                                                                                           \
		UNROLL for (int u = 0; u < R; u++)                                                                   \
			ST(dx + (i) + u * VL, by * (LD(x + (i) + u * VL) - LDT(t + (i) + u * VL)));                      \
	}
		SPAN(m, BODY);
#undef BODY
	}
}
#undef LDT
#undef ROWS
#undef PIECE
#undef POS
