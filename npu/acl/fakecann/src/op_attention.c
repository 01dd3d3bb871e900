// Flash attention, forward and backward, with the masks, layouts and limits of the real one. softmaxMax and softmaxSum are f32 [B,N,S,8], eight equal lanes.
#include "op.h"

#include <float.h>
#include <math.h>

enum { LANES = 8, MASK = 2048, ROWS = 64 };

typedef struct geometry {
	int64_t b, h, g, s, t, d, dv;
} geometry;

// heads makes [B,N,S,D] of a tensor in a layout; n is the number of heads where the layout hides it (0: by the dim d).
static bool heads(const ft *x, const char *layout, int64_t n, ft *v) {
	static const struct {
		const char *name;
		int order[4]; // where B, N, S, D stand; -1: N is in D
	} known[] = {{"BSND", {0, 2, 1, 3}}, {"BNSD", {0, 1, 2, 3}}, {"BSH", {0, -1, 1, 2}}, {"SBH", {1, -1, 0, 2}}};
	*v = *x;
	v->nd = 4;
	for (size_t l = 0; l < sizeof known / sizeof *known; l++) {
		if (strcmp(known[l].name, layout)) continue;
		bool hidden = known[l].order[1] < 0;
		if (x->nd != (hidden ? 3 : 4)) return false;
		for (int i = 0; i < 4; i++) {
			int at = known[l].order[i];
			if (at >= 0) v->dims[i] = x->dims[at], v->strides[i] = x->strides[at];
		}
		if (hidden) {
			if (n < 1 || v->dims[3] % n) return false;
			v->dims[1] = n;
			v->dims[3] /= n;
			v->strides[1] = v->dims[3] * v->strides[3];
		}
		return true;
	}
	return false;
}

// shapes reads q, k, v; false with a text where they do not fit.
static bool shapes(const ft *q, const ft *key, const ft *val, const char *layout, int64_t n, ft *vq, ft *vk, ft *vv, geometry *g, const char **why) {
	*why = "inputLayout should be BSH, SBH, BSND or BNSD, with the rank of query";
	if (!layout || !heads(q, layout, n, vq)) return false;
	*why = "key or value does not fit inputLayout and headNum";
	int64_t kn = vq->dims[3] > 0 ? key->dims[key->nd - 1] / vq->dims[3] : 0;
	if (!heads(key, layout, kn, vk) || !heads(val, layout, kn, vv)) return false;
	*g = (geometry){vq->dims[0], vq->dims[1], vk->dims[1], vq->dims[2], vk->dims[2], vq->dims[3], vv->dims[3]};
	*why = "headNum differs from the heads of query";
	if (g->h != n) return false;
	*why = "key and value differ in batch, heads or length from query or from each other";
	if (vk->dims[0] != g->b || vv->dims[0] != g->b || vv->dims[1] != g->g || vv->dims[2] != g->t) return false;
	*why = "the heads of query are no multiple of the heads of key";
	if (g->g < 1 || g->h % g->g) return false;
	*why = "the head dims of query and key differ, or that of value is larger";
	if (vk->dims[3] != g->d || g->dv > g->d) return false;
	*why = "headNum should be in [1, 256]";
	if (g->h < 1 || g->h > 256) return false;
	*why = "the head dim should be in [1, 768]";
	return g->d >= 1 && g->d <= 768;
}

static void mask_check(ck *k, const ft *m, int64_t mode, const geometry *g) {
	if (k->rc) return;
	ck_between(k, "sparseMode", mode, 0, 4);
	if (!k->rc && mode >= 1 && !m) ck_fail(k, ACLNN_PARAM, "attenMaskOptional is null, sparseMode %lld needs it.", (long long)mode);
	if (k->rc || !m) return;
	int64_t rows = m->nd >= 2 ? m->dims[m->nd - 2] : 0, cols = m->nd >= 2 ? m->dims[m->nd - 1] : 0;
	bool ok = m->nd == 2 || m->nd == 4;
	if (mode >= 2) {
		ok = ok && rows == MASK && cols == MASK && (m->nd == 2 || (m->dims[0] == 1 && m->dims[1] == 1));
		if (!ok) ck_fail(k, ACLNN_PARAM, "attenMaskOptional should be [2048,2048] for sparseMode %lld.", (long long)mode);
		return;
	}
	ok = ok && rows == g->s && cols == g->t;
	if (ok && m->nd == 4) ok = (m->dims[0] == 1 && m->dims[1] == 1) || (m->dims[0] == g->b && (m->dims[1] == 1 || m->dims[1] == g->h));
	if (!ok) ck_fail(k, ACLNN_PARAM, "attenMaskOptional should be [Sq,Skv], [1,1,Sq,Skv], [B,1,Sq,Skv] or [B,N,Sq,Skv].");
}

// common_check: what forward and backward ask. at is where prefixOptional stands, m where attenMaskOptional.
static void common_check(ck *k, const ft *q, const ft *key, const ft *val, int m, int at, geometry *g) {
	if (k->rc) return;
	const fcall *c = k->c;
	ck_alike(k, q, "query", key, "key");
	ck_alike(k, q, "query", val, "value");
	ft *mask = ck_opt(k, m, "attenMaskOptional", D_MASK), vq, vk, vv;
	const char *why;
	if (k->rc) return;
	if (!c->a[at + 6].str) ck_fail(k, ACLNN_NULLPTR, "Expected a string but got null for argument inputLayout.");
	if (!k->rc && !shapes(q, key, val, c->a[at + 6].str, c->a[at + 5].i, &vq, &vk, &vv, g, &why)) ck_fail(k, ACLNN_PARAM, "%s.", why);
	mask_check(k, mask, c->a[at + 8].i, g);
	if (k->rc) return;
	if (c->a[m - 3].t) ck_fail(k, ACLNN_NO_KERNEL, "realShiftOptional (pse): the fake has none.");
	if (c->a[m - 2].t) ck_fail(k, ACLNN_NO_KERNEL, "dropMaskOptional: the fake has none.");
	if (c->a[m - 1].t) ck_fail(k, ACLNN_PARAM, "paddingMaskOptional is not supported, should be null.");
	if (c->a[at].a && c->a[at].a->n) ck_fail(k, ACLNN_PARAM, "prefixOptional goes with sparseMode 5 and 6.");
	if (!(c->a[at + 2].f > 0 && c->a[at + 2].f <= 1)) ck_fail(k, ACLNN_PARAM, "keepProb is %g, should be in (0, 1].", c->a[at + 2].f);
	if (c->a[at + 2].f < 1) ck_fail(k, ACLNN_PARAM, "keepProb is %g, which needs dropMaskOptional.", c->a[at + 2].f);
	if (!isfinite(c->a[at + 1].f)) ck_fail(k, ACLNN_PARAM, "scaleValue is not finite.");
	ck_between(k, "innerPrecise", c->a[at + 7].i, 0, 4);
}

static void lanes_check(ck *k, const ft *t, const char *name, const geometry *g) {
	if (k->rc) return;
	const int64_t want[4] = {g->b, g->h, g->s, LANES};
	ck_shape(k, t, name, 4, want);
	ck_contiguous(k, t, name);
}

static int FlashAttentionScore_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC(A2) | SOC(A3) | SOC(950));
	geometry g = {0};
	ft *q = ck_t(&k, 0, "query", D_FLOAT), *key = ck_t(&k, 1, "key", D_FLOAT), *val = ck_t(&k, 2, "value", D_FLOAT);
	ft *max = ck_t(&k, 16, "softmaxMaxOut", D(F32)), *sum = ck_t(&k, 17, "softmaxSumOut", D(F32)), *out = ck_t(&k, 19, "attentionOutOut", D_FLOAT);
	common_check(&k, q, key, val, 6, 7, &g);
	lanes_check(&k, max, "softmaxMaxOut", &g);
	lanes_check(&k, sum, "softmaxSumOut", &g);
	ck_alike(&k, q, "query", out, "attentionOutOut");
	if (k.rc) return k.rc;
	ft v, vq;
	heads(q, c->a[13].str, g.h, &vq);
	bool fits = heads(out, c->a[13].str, g.h, &v) && v.dims[3] == g.dv;
	for (int i = 0; i < 3 && fits; i++) fits = v.dims[i] == vq.dims[i];
	if (!fits) ck_fail(&k, ACLNN_PARAM, "attentionOutOut should have the shape of query with the head dim of value.");
	return k.rc;
}

// sight says which keys a query sees.
typedef struct sight {
	const ft *m;
	char *raw; // the mask's bytes, packed
	int64_t mode, before, after, b, n;
	geometry g;
} sight;

static sight sight_of(const fcall *c, int m, int at, const geometry *g) {
	const ft *t = c->a[m].t;
	sight v = {.m = t, .raw = t ? pack_raw(t) : NULL, .mode = c->a[at + 8].i, .before = c->a[at + 3].i, .after = c->a[at + 4].i, .g = *g};
	if (t && t->nd == 4) v.b = t->dims[0], v.n = t->dims[1];
	return v;
}

// compressed reads the triangle of 2048: what it holds so many places right of its diagonal.
static bool compressed(const sight *v, int64_t s, int64_t ahead) {
	int64_t row = s % (MASK / 2), col = row + ahead;
	if (ahead < 0) {
		col = s % (MASK / 2);
		row = col - ahead;
	}
	row = row < MASK ? row : MASK - 1;
	col = col < MASK ? col : MASK - 1;
	return v->raw[row * MASK + col] != 0;
}

static bool masked(const sight *v, int64_t b, int64_t h, int64_t s, int64_t t) {
	if (!v->m) return false;
	int64_t right = t - s - (v->g.t - v->g.s);
	switch (v->mode) {
	case 2: return compressed(v, s, t - s);
	case 3: return compressed(v, s, right);
	case 4: return compressed(v, s, right - v->after) || right < -v->before;
	}
	int64_t at = s * v->g.t + t;
	if (v->b > 1) at += b * v->n * v->g.s * v->g.t;
	if (v->n > 1) at += h * v->g.s * v->g.t;
	return v->raw[at] != 0 || (v->mode == 0 && (t - s > v->after || s - t > v->before));
}

// scores computes a block of rows of scale·q·kᵀ, -FLT_MAX where masked.
static void scores(const sight *v, int64_t b, int64_t h, int64_t s0, int64_t rows, const float *q, const float *k, float scale, float *p) {
	gemm(rows, v->g.t, v->g.d, q, v->g.d, 1, k, 1, v->g.d, 0, p, v->g.t);
	for (int64_t i = 0; i < rows * v->g.t; i++) {
		p[i] *= scale;
		if (masked(v, b, h, s0 + i / v->g.t, i % v->g.t)) p[i] = -FLT_MAX;
	}
}

static void forward_rows(const sight *v, bool careful, int64_t rows, float *p, float *max, float *sum) {
	for (int64_t r = 0; r < rows; r++) {
		float *row = p + r * v->g.t, m = -FLT_MAX;
		double s = 0;
		for (int64_t t = 0; t < v->g.t; t++) m = row[t] > m || row[t] != row[t] ? row[t] : m;
		for (int64_t t = 0; t < v->g.t; t++) s += row[t] = row[t] == -FLT_MAX && m != -FLT_MAX ? 0 : expf(row[t] - m);
		if (careful && m == -FLT_MAX) { // the query sees nothing: its result is 0
			s = INFINITY;
		}
		const float share = (float)(1 / s);
		for (int64_t t = 0; t < v->g.t; t++) row[t] *= share;
		for (int64_t l = 0; l < LANES; l++) max[r * LANES + l] = m, sum[r * LANES + l] = (float)s;
	}
}

static int FlashAttentionScore_run(const fcall *c) {
	ft vq, vk, vv, vo;
	geometry g;
	const char *why;
	shapes(c->a[0].t, c->a[1].t, c->a[2].t, c->a[13].str, c->a[12].i, &vq, &vk, &vv, &g, &why);
	heads(c->a[19].t, c->a[13].str, g.h, &vo);
	sight v = sight_of(c, 6, 7, &g);
	float *q = pack_f(&vq), *k = pack_f(&vk), *val = pack_f(&vv), *o = room(ft_numel(&vo), 4), *p = room(ROWS * g.t, 4);
	float *max = room(g.b * g.h * g.s * LANES, 4), *sum = room(g.b * g.h * g.s * LANES, 4);
	for (int64_t i = 0; i < g.b * g.h; i++) {
		int64_t kv = i / g.h * g.g + i % g.h / (g.h / g.g);
		for (int64_t s = 0; s < g.s; s += ROWS) {
			int64_t rows = g.s - s < ROWS ? g.s - s : ROWS, at = i * g.s + s;
			scores(&v, i / g.h, i % g.h, s, rows, q + at * g.d, k + kv * g.t * g.d, (float)c->a[8].f, p);
			forward_rows(&v, c->a[14].i == 2, rows, p, max + at * LANES, sum + at * LANES);
			gemm(rows, g.dv, g.t, p, g.t, 1, val + kv * g.t * g.dv, g.dv, 1, 0, o + at * g.dv, g.dv);
		}
	}
	unpack_f(&vo, o);
	unpack_f(c->a[16].t, max);
	unpack_f(c->a[17].t, sum);
	free(q), free(k), free(val), free(o), free(p), free(max), free(sum), free(v.raw);
	return 0;
}
static int64_t FlashAttentionScore_ws(const fcall *c) { return 4 * ws_of(c->a[16].t); }
FOP(FlashAttentionScore) = {.check = FlashAttentionScore_check, .run = FlashAttentionScore_run, .workspace = FlashAttentionScore_ws};

static int FlashAttentionScoreGrad_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ck_soc(&k, SOC(A2) | SOC(A3) | SOC(950));
	geometry g = {0};
	ft *q = ck_t(&k, 0, "query", D_FLOAT), *key = ck_t(&k, 1, "keyIn", D_FLOAT), *val = ck_t(&k, 2, "value", D_FLOAT), *dy = ck_t(&k, 3, "dy", D_FLOAT);
	ft *max = ck_t(&k, 8, "softmaxMaxOptional", D(F32)), *sum = ck_t(&k, 9, "softmaxSumOptional", D(F32)), *o = ck_t(&k, 11, "attentionInOptional", D_FLOAT);
	ft *dq = ck_t(&k, 21, "dqOut", D_FLOAT), *dk = ck_t(&k, 22, "dkOut", D_FLOAT), *dv = ck_t(&k, 23, "dvOut", D_FLOAT);
	common_check(&k, q, key, val, 7, 12, &g);
	lanes_check(&k, max, "softmaxMaxOptional", &g);
	lanes_check(&k, sum, "softmaxSumOptional", &g);
	const struct {
		const ft *like, *t;
		const char *ln, *name;
	} all[] = {{o, dy, "attentionInOptional", "dy"}, {q, dq, "query", "dqOut"}, {key, dk, "keyIn", "dkOut"}, {val, dv, "value", "dvOut"}};
	for (int i = 0; i < 4; i++) {
		ck_same(&k, all[i].like, all[i].ln, all[i].t, all[i].name);
		ck_alike(&k, q, "query", all[i].t, all[i].name);
	}
	ck_alike(&k, q, "query", o, "attentionInOptional");
	if (k.rc) return k.rc;
	ft vo;
	if (!heads(o, c->a[18].str, g.h, &vo) || vo.dims[0] != g.b || vo.dims[2] != g.s || vo.dims[3] != g.dv) ck_fail(&k, ACLNN_PARAM,
		"attentionInOptional does not fit query and value.");
	return k.rc;
}

// back_rows turns scores into P, given max and sum, and dP into dS.
static void back_rows(const geometry *g, int64_t rows, float *p, float *dp, const float *max, const float *sum, const float *o, const float *dy) {
	for (int64_t r = 0; r < rows; r++) {
		double dot = 0;
		for (int64_t j = 0; j < g->dv; j++) dot += (double)o[r * g->dv + j] * dy[r * g->dv + j];
		for (int64_t t = 0; t < g->t; t++) { // all lanes are read: each must hold its copy
			float *x = p + r * g->t + t, *y = dp + r * g->t + t;
			*x = expf(*x - max[r * LANES + t % LANES]) / sum[r * LANES + t % LANES];
			*y = *x * (*y - (float)dot);
		}
	}
}

static int FlashAttentionScoreGrad_run(const fcall *c) {
	ft vq, vk, vv, vo, vdy, view;
	geometry g;
	const char *why, *layout = c->a[18].str;
	shapes(c->a[0].t, c->a[1].t, c->a[2].t, layout, c->a[17].i, &vq, &vk, &vv, &g, &why);
	heads(c->a[11].t, layout, g.h, &vo);
	heads(c->a[3].t, layout, g.h, &vdy);
	sight v = sight_of(c, 7, 12, &g);
	float *q = pack_f(&vq), *k = pack_f(&vk), *val = pack_f(&vv), *o = pack_f(&vo), *dy = pack_f(&vdy), *max = pack_f(c->a[8].t), *sum = pack_f(c->a[9].t);
	float *dq = room(ft_numel(&vq), 4), *dk = room(ft_numel(&vk), 4), *dv = room(ft_numel(&vv), 4), *p = room(ROWS * g.t, 4), *dp = room(ROWS * g.t, 4);
	const float scale = (float)c->a[13].f;
	int64_t blocks = (g.s + ROWS - 1) / ROWS, n = g.b * g.h * blocks, *order = room(n, 8);
	uint64_t state = c->seed;
	for (int64_t i = 0; i < n; i++) order[i] = i;
	if (open_order(c)) shuffle(&state, order, n); // blocks add to dk and dv as cores come by
	for (int64_t i = 0; i < n; i++) {
		int64_t bh = order[i] / blocks, s = order[i] % blocks * ROWS, rows = g.s - s < ROWS ? g.s - s : ROWS, at = bh * g.s + s;
		int64_t kv = bh / g.h * g.g + bh % g.h / (g.h / g.g);
		float *kk = k + kv * g.t * g.d, *kv2 = val + kv * g.t * g.dv;
		scores(&v, bh / g.h, bh % g.h, s, rows, q + at * g.d, kk, scale, p);
		gemm(rows, g.t, g.dv, dy + at * g.dv, g.dv, 1, kv2, 1, g.dv, 0, dp, g.t);
		back_rows(&g, rows, p, dp, max + at * LANES, sum + at * LANES, o + at * g.dv, dy + at * g.dv);
		gemm(g.t, g.dv, rows, p, 1, g.t, dy + at * g.dv, g.dv, 1, 1, dv + kv * g.t * g.dv, g.dv);
		for (int64_t j = 0; j < rows * g.t; j++) dp[j] *= scale;
		gemm(rows, g.d, g.t, dp, g.t, 1, kk, g.d, 1, 0, dq + at * g.d, g.d);
		gemm(g.t, g.d, rows, dp, 1, g.t, q + at * g.d, g.d, 1, 1, dk + kv * g.t * g.d, g.d);
	}
	heads(c->a[21].t, layout, g.h, &view);
	unpack_f(&view, dq);
	heads(c->a[22].t, layout, g.g, &view);
	unpack_f(&view, dk);
	heads(c->a[23].t, layout, g.g, &view);
	unpack_f(&view, dv);
	free(q), free(k), free(val), free(o), free(dy), free(max), free(sum), free(v.raw);
	free(dq), free(dk), free(dv), free(p), free(dp), free(order);
	return 0;
}
static int64_t FlashAttentionScoreGrad_ws(const fcall *c) { return 8 * ws_of(c->a[8].t); }
FOP(FlashAttentionScoreGrad) = {.check = FlashAttentionScoreGrad_check, .run = FlashAttentionScoreGrad_run, .workspace = FlashAttentionScoreGrad_ws,
	.nondeterministic = true};
