// Softmax and cross-entropy of rows of m classes, for one instruction set and element type.
#include "type.h"

// log Σ exp(x), shifted by the maximum.
static float FN(lse_row)(const EL *x, int64_t m) {
	V top[4], s[4] = {0};
	float t = -INFINITY, sum = 0;
	for (int u = 0; u < 4; u++) top[u] = ISA(splat)(t);
	int64_t i = 0;
	enum { n = VL };
	for (; i + 4 * VL <= m; i += 4 * VL)
		UNROLL for (int u = 0; u < 4; u++) top[u] = ISA(vmax)(top[u], LD(x + i + u * VL));
	for (; i < m; i++) {
		float v = LD1(x + i);
		if (!(v <= t)) t = v;
	}
	for (int u = 0; u < 4; u++)
		for (int l = 0; l < VL; l++)
			if (!(top[u][l] <= t)) t = top[u][l];
	if (!(fabsf(t) < INFINITY)) return t;
	for (i = 0; i + 4 * VL <= m; i += 4 * VL)
		UNROLL for (int u = 0; u < 4; u++) s[u] += ISA(vexp)(LD(x + i + u * VL) - t);
	for (; i < m; i++) sum += expf(LD1(x + i) - t);
	return t + logf(sum + ISA(vsum)((s[0] + s[1]) + (s[2] + s[3])));
}

static void FN(softmax_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	int lg = c->flags & ROWS_LOG;
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * m;
		EL *y = (EL *)c->p[1] + r * m;
		float lse = FN(lse_row)(x, m);
#define BODY(R, N, i)                                                    \
	{                                                                    \
		int n = N;                                                       \
		UNROLL for (int u = 0; u < R; u++) {                             \
			V t = LD(x + (i) + u * VL) - lse;                            \
			ST(y + (i) + u * VL, lg ? t : ISA(vexp)(t));                 \
		}                                                                \
	}
		SPAN(m, BODY);
#undef BODY
	}
}

// softmax: dx = y*(dy - Σ dy·y); log_softmax: dx = dy - exp(y)*Σ dy.
static void FN(softmax_bwd_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	int lg = c->flags & ROWS_LOG;
	for (int64_t r = lo; r < hi; r++) {
		const EL *dy = (const EL *)c->p[0] + r * m, *y = (const EL *)c->p[1] + r * m;
		EL *dx = (EL *)c->p[2] + r * m;
		V s[4] = {0};
#define BODY(R, N, i)                                                                                \
	{                                                                                                \
		int n = N;                                                                                   \
		UNROLL for (int u = 0; u < R; u++) s[u] += lg ? LD(dy + (i) + u * VL) : LD(dy + (i) + u * VL) * LD(y + (i) + u * VL); \
	}
		SPAN(m, BODY);
#undef BODY
		float sum = ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
#define BODY(R, N, i)                                                                                \
	{                                                                                                \
		int n = N;                                                                                   \
		UNROLL for (int u = 0; u < R; u++) {                                                         \
			V g = LD(dy + (i) + u * VL), t = LD(y + (i) + u * VL);                                   \
			ST(dx + (i) + u * VL, lg ? g - ISA(vexp)(t) * sum : t * (g - sum));                      \
		}                                                                                            \
	}
		SPAN(m, BODY);
#undef BODY
	}
}

static void FN(ce_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	const int32_t *labels = c->p[1];
	float *lse = c->p[4];
	double *rows = c->ws, eps = c->f[0];
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * m;
		float l = FN(lse_row)(x, m);
		if (lse) lse[r] = l;
		if (labels[r] == c->n[2]) continue;
		double loss = (double)l - LD1(x + labels[r]);
		if (eps > 0) {
			V s[4] = {0}; // Σ (lse - x), which stays small where the logits are large
#define BODY(R, N, i)                                                                      \
	{                                                                                      \
		int n = N;                                                                         \
		UNROLL for (int u = 0; u < R; u++) s[u] += ISA(keep)(l - LD(x + (i) + u * VL), n); \
	}
			SPAN(m, BODY);
#undef BODY
			loss = (1 - eps) * loss + eps * ISA(vsum)((s[0] + s[1]) + (s[2] + s[3])) / (double)m;
		}
		rows[r] = loss;
	}
}

static void FN(ce_bwd_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	const int32_t *labels = c->p[1];
	const float *lse = c->p[2];
	float d = *(const float *)c->p[3], share = (float)(c->f[0] / (double)m), hit = (float)(1 - c->f[0]);
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * m;
		EL *dx = (EL *)c->p[4] + r * m;
		if (labels[r] == c->n[2]) {
			memset(dx, 0, (size_t)m * sizeof *dx);
			continue;
		}
		float l = lse[r], at = LD1(x + labels[r]);
#define BODY(R, N, i)                                                                                \
	{                                                                                                \
		int n = N;                                                                                   \
		UNROLL for (int u = 0; u < R; u++) ST(dx + (i) + u * VL, (ISA(vexp)(LD(x + (i) + u * VL) - l) - share) * d); \
	}
		SPAN(m, BODY);
#undef BODY
		ST1(dx + labels[r], (expf(at - l) - share - hit) * d);
	}
}

// Targets are float32, whatever the logits are.
#define LDT(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))

static float FN(mass_row)(const float *t, int64_t m) {
	V s[4] = {0};
#define BODY(R, N, i)                                                        \
	{                                                                        \
		int n = N;                                                           \
		UNROLL for (int u = 0; u < R; u++) s[u] += LDT(t + (i) + u * VL);    \
	}
	SPAN(m, BODY);
#undef BODY
	return ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
}

// A logit whose target is 0 counts through lse alone, so that -inf is allowed there.
static void FN(soft_ce_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	float *lse = c->p[4];
	double *rows = c->ws;
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * m;
		const float *t = (const float *)c->p[1] + r * m;
		float l = FN(lse_row)(x, m);
		if (lse) lse[r] = l;
		V s[4] = {0};
#define BODY(R, N, i)                                                                                       \
	{                                                                                                       \
		int n = N;                                                                                          \
		UNROLL for (int u = 0; u < R; u++) {                                                                \
			V p = LDT(t + (i) + u * VL);                                                                    \
			s[u] += ISA(select)(p == (V){}, (V){}, p * (l - LD(x + (i) + u * VL)));                         \
		}                                                                                                   \
	}
		SPAN(m, BODY);
#undef BODY
		rows[2 * r] = ISA(vsum)((s[0] + s[1]) + (s[2] + s[3]));
		rows[2 * r + 1] = FN(mass_row)(t, m);
	}
}

static void FN(soft_ce_bwd_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	const float *lse = c->p[2];
	float d = *(const float *)c->p[3];
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * m;
		const float *t = (const float *)c->p[1] + r * m;
		EL *dx = (EL *)c->p[4] + r * m;
		float l = lse[r], mass = FN(mass_row)(t, m);
		int some = mass != 0;
#define BODY(R, N, i)                                                                                       \
	{                                                                                                       \
		int n = N;                                                                                          \
		UNROLL for (int u = 0; u < R; u++) {                                                                \
			V p = LDT(t + (i) + u * VL), e = some ? mass * ISA(vexp)(LD(x + (i) + u * VL) - l) : (V){};     \
			ST(dx + (i) + u * VL, (e - p) * d);                                                             \
		}                                                                                                   \
	}
		SPAN(m, BODY);
#undef BODY
	}
}
#undef LDT

// A row is correct if fewer than k classes come before its label: larger, or equal with a lower index.
static void FN(topk_rows)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t m = c->n[1];
	const int32_t *labels = c->p[1];
	double *rows = c->ws;
	for (int64_t r = lo; r < hi; r++) {
		const EL *x = (const EL *)c->p[0] + r * m;
		rows[r] = 0;
		if (labels[r] == c->n[2]) continue;
		float mine = LD1(x + labels[r]);
		int64_t before = 0;
		for (int64_t j = 0; j < m; j++) {
			float v = LD1(x + j);
			before += v > mine || (v == mine && j < labels[r]);
		}
		rows[r] = before < c->n[3] && mine == mine;
	}
}
