// Pooling in two dims, NCHW.
#include "op.h"

#include <math.h>

typedef struct pool {
	int64_t planes, h, w, oh, ow, kh, kw, sh, sw, ph, pw;
} pool;

static void pair(const farray *a, int64_t *h, int64_t *w) {
	*h = a->i[0];
	*w = a->i[a->n - 1];
}

static int64_t out_size(int64_t n, int64_t k, int64_t s, int64_t p, bool ceil_mode) {
	int64_t o = (n + 2 * p - k + (ceil_mode ? s - 1 : 0)) / s + 1;
	return ceil_mode && (o - 1) * s >= n + p ? o - 1 : o; // the last window starts inside
}

static pool pool_of(const ft *x, const farray *kernel, const farray *stride, const farray *pad, bool ceil_mode) {
	pool g = {.planes = x->dims[0] * x->dims[1], .h = x->dims[2], .w = x->dims[3]};
	pair(kernel, &g.kh, &g.kw);
	pair(stride->n ? stride : kernel, &g.sh, &g.sw);
	pair(pad, &g.ph, &g.pw);
	g.oh = out_size(g.h, g.kh, g.sh, g.ph, ceil_mode);
	g.ow = out_size(g.w, g.kw, g.sw, g.pw, ceil_mode);
	return g;
}

// window_check checks the arrays of a pool, which start at argument at, and the shape of its result.
static void window_check(ck *k, const ft *x, int at, bool ceil_mode, const ft *y, const char *yn) {
	if (k->rc) return;
	ck_rank(k, x, "self", 4, 4);
	ck_image(k, x, "self");
	const farray *kernel = ck_array(k, at, "kernelSize", 1, 2), *stride = ck_array(k, at + 1, "stride", 0, 2), *pad = ck_array(k, at + 2, "padding", 1, 2);
	if (k->rc) return;
	for (int64_t i = 0; i < kernel->n; i++) ck_between(k, "kernelSize", kernel->i[i], 1, INT32_MAX);
	for (int64_t i = 0; i < stride->n; i++) ck_between(k, "stride", stride->i[i], 1, INT32_MAX);
	for (int64_t i = 0; i < pad->n; i++) ck_between(k, "padding", pad->i[i], 0, kernel->i[i < kernel->n ? i : 0] / 2);
	if (k->rc) return;
	pool g = pool_of(x, kernel, stride, pad, ceil_mode);
	const int64_t want[4] = {x->dims[0], x->dims[1], g.oh, g.ow};
	if (g.oh < 1 || g.ow < 1) ck_fail(k, ACLNN_PARAM, "kernelSize is larger than the padded input.");
	ck_image(k, y, yn);
	ck_shape(k, y, yn, 4, want);
	ck_alike(k, x, "self", y, yn);
}

static void mask_shape(ck *k, const ft *x, const ft *y, const ft *m, const farray *kernel) {
	if (k->rc) return;
	int64_t kh, kw;
	pair(kernel, &kh, &kw);
	const int64_t want[4] = {x->dims[0], x->dims[1], kh * kw, ((y->dims[2] * y->dims[3] + 15) / 16 + 1) * 32};
	ck_shape(k, m, "indices", 4, want);
	ck_contiguous(k, m, "indices");
}

static int maxpool_check(const fcall *c, char *err, size_t n, bool mask, bool back) {
	CK(k);
	ck_soc(&k, mask ? SOC(910) | SOC(A2) | SOC(A3) : SOC_TRAIN);
	int at = back ? 3 : 1;
	ft *dy = back ? ck_t(&k, 0, "gradOutput", D_FLOAT) : NULL, *x = ck_t(&k, back, "self", D_FLOAT);
	ft *y = back ? dy : ck_t(&k, 6, "out", D_FLOAT), *idx = ck_t(&k, back ? 2 : 7, "indices", mask ? D(I8) : D_INDEX);
	const farray *dilation = ck_array(&k, at + 3, "dilation", 1, 2);
	window_check(&k, x, at, c->a[at + 4].i, y, back ? "gradOutput" : "out");
	for (int64_t i = 0; !k.rc && i < dilation->n; i++) ck_between(&k, "dilation", dilation->i[i], 1, 1);
	if (k.rc) return k.rc;
	if (mask) mask_shape(&k, x, y, idx, c->a[at].a);
	else ck_same(&k, y, "out", idx, "indices");
	if (back) {
		ft *dx = ck_t(&k, 8, "gradInput", D_FLOAT);
		ck_image(&k, dx, "gradInput");
		ck_same(&k, x, "self", dx, "gradInput");
		ck_alike(&k, x, "self", dx, "gradInput");
	}
	return k.rc;
}

// best finds the first largest element of a window: its place in the plane, and in the window.
static int64_t best(const pool *g, const float *x, int64_t oy, int64_t ox, int64_t *in_window) {
	int64_t at = -1;
	for (int64_t k = 0; k < g->kh * g->kw; k++) {
		int64_t y = oy * g->sh - g->ph + k / g->kw, z = ox * g->sw - g->pw + k % g->kw;
		if (y < 0 || y >= g->h || z < 0 || z >= g->w) continue;
		if (at < 0 || x[y * g->w + z] > x[at]) {
			at = y * g->w + z;
			*in_window = k;
		}
	}
	return at;
}

static int maxpool_run(const fcall *c, bool mask) {
	const ft *x = c->a[0].t, *y = c->a[6].t, *idx = c->a[7].t;
	pool g = pool_of(x, c->a[1].a, c->a[2].a, c->a[3].a, c->a[5].i);
	int64_t p = g.oh * g.ow, pitch = mask ? idx->dims[3] : 0;
	float *px = pack_f(x), *py = room(ft_numel(y), 4);
	int64_t *pi = mask ? NULL : room(ft_numel(y), 8);
	char *pm = mask ? idx->base + idx->offset : NULL;
	for (int64_t i = 0; i < g.planes; i++) {
		for (int64_t j = 0; j < p; j++) {
			int64_t k = 0, at = best(&g, px + i * g.h * g.w, j / g.ow, j % g.ow, &k);
			py[i * p + j] = px[i * g.h * g.w + at];
			if (pi) pi[i * p + j] = at;
			for (int64_t q = 0; pm && q < g.kh * g.kw; q++) pm[(i * g.kh * g.kw + q) * pitch + j] = q == k ? 0x5a : 0x25;
		}
	}
	unpack_f(y, py);
	if (pi) unpack_i(idx, pi);
	free(px), free(py), free(pi);
	return 0;
}

// maxpool_back adds dy where the indices or the mask point. Nothing reads self.
static int maxpool_back(const fcall *c, bool mask) {
	const ft *dy = c->a[0].t, *dx = c->a[8].t, *idx = c->a[2].t;
	pool g = pool_of(dx, c->a[3].a, c->a[4].a, c->a[5].a, c->a[7].i);
	int64_t p = g.oh * g.ow, hw = g.h * g.w, *order = room(p, 8);
	float *pd = pack_f(dy), *px = room(ft_numel(dx), 4);
	int64_t *pi = mask ? NULL : pack_i(idx);
	const char *pm = mask ? idx->base + idx->offset : NULL;
	for (int64_t j = 0; j < p; j++) order[j] = j;
	uint64_t state = c->seed;
	if (open_order(c)) shuffle(&state, order, p);
	for (int64_t i = 0; i < g.planes; i++) {
		for (int64_t o = 0; o < p; o++) {
			int64_t j = order[o], at = pi ? pi[i * p + j] : -1;
			for (int64_t q = 0; pm && q < g.kh * g.kw; q++) {
				if (pm[(i * g.kh * g.kw + q) * idx->dims[3] + j] != 0x5a) continue;
				at = (j / g.ow * g.sh - g.ph + q / g.kw) * g.w + j % g.ow * g.sw - g.pw + q % g.kw;
			}
			if (at < 0 || at >= hw) {
				fake_out_of_range++;
				continue;
			}
			px[i * hw + at] += pd[i * p + j];
		}
	}
	unpack_f(dx, px);
	free(pd), free(px), free(pi), free(order);
	return 0;
}

#define MAXPOOL(name, mask) \
	static int name##_check(const fcall *c, char *err, size_t n) { return maxpool_check(c, err, n, mask, false); } \
	static int name##_run(const fcall *c) { return maxpool_run(c, mask); } \
	static int name##Backward_check(const fcall *c, char *err, size_t n) { return maxpool_check(c, err, n, mask, true); } \
	static int name##Backward_run(const fcall *c) { return maxpool_back(c, mask); } \
	static int64_t name##Backward_ws(const fcall *c) { return ws_of(c->a[8].t); } \
	FOP(name) = {.check = name##_check, .run = name##_run}; \
	FOP(name##Backward) = {.check = name##Backward_check, .run = name##Backward_run, .workspace = name##Backward_ws, .nondeterministic = true};

MAXPOOL(MaxPool2dWithIndices, false)
MAXPOOL(MaxPool2dWithMask, true)

// avgpool_check: backward has gradOutput in front.
static int avgpool_check(const fcall *c, char *err, size_t n, bool back) {
	CK(k);
	int at = back ? 2 : 1;
	ft *dy = back ? ck_t(&k, 0, "gradOutput", D_FLOAT) : NULL, *x = ck_t(&k, back, "self", D_FLOAT), *y = ck_t(&k, at + 7, back ? "gradInput" : "out", D_FLOAT);
	window_check(&k, x, at, c->a[at + 3].i, back ? dy : y, back ? "gradOutput" : "out");
	if (k.rc) return k.rc;
	if (back) {
		ck_image(&k, y, "gradInput");
		ck_same(&k, x, "self", y, "gradInput");
		ck_alike(&k, x, "self", y, "gradInput");
	}
	ck_between(&k, "divisorOverride", c->a[at + 5].i, -255, 255);
	ck_cube(&k, x, c->a[at + 6].i);
	if (x->dtype == DT_F32 && c->soc != SOC_910 && c->a[at + 6].i) ck_fail(&k, ACLNN_PARAM, "cubeMathType is %lld, DT_FLOAT needs 0 (KEEP_DTYPE).",
		(long long)c->a[at + 6].i);
	return k.rc;
}

// frame finds the part of a window that lies inside, and its divisor.
static double frame(const pool *g, bool with_pad, int64_t divisor, int64_t oy, int64_t ox, int64_t *y0, int64_t *y1, int64_t *x0, int64_t *x1) {
	int64_t y = oy * g->sh - g->ph, x = ox * g->sw - g->pw, ye = y + g->kh, xe = x + g->kw;
	if (ye > g->h + g->ph) ye = g->h + g->ph;
	if (xe > g->w + g->pw) xe = g->w + g->pw;
	int64_t all = (ye - y) * (xe - x);
	*y0 = y < 0 ? 0 : y, *x0 = x < 0 ? 0 : x;
	*y1 = ye > g->h ? g->h : ye, *x1 = xe > g->w ? g->w : xe;
	return (double)(divisor ? divisor : with_pad ? all : (*y1 - *y0) * (*x1 - *x0));
}

static void average(const pool *g, const float *x, float *y, bool with_pad, int64_t divisor) {
	for (int64_t i = 0; i < g->planes; i++, x += g->h * g->w) {
		for (int64_t j = 0; j < g->oh * g->ow; j++) {
			int64_t y0, y1, x0, x1;
			double s = 0, d = frame(g, with_pad, divisor, j / g->ow, j % g->ow, &y0, &y1, &x0, &x1);
			for (int64_t a = y0; a < y1; a++) {
				for (int64_t b = x0; b < x1; b++) s += x[a * g->w + b];
			}
			*y++ = (float)(s / d);
		}
	}
}

static void spread_back(const fcall *c, const pool *g, const float *dy, float *dx, bool with_pad, int64_t divisor) {
	int64_t p = g->oh * g->ow, *order = room(p, 8);
	for (int64_t j = 0; j < p; j++) order[j] = j;
	uint64_t state = c->seed;
	if (open_order(c)) shuffle(&state, order, p);
	for (int64_t i = 0; i < g->planes; i++, dx += g->h * g->w, dy += p) {
		for (int64_t o = 0; o < p; o++) {
			int64_t j = order[o], y0, y1, x0, x1;
			double d = frame(g, with_pad, divisor, j / g->ow, j % g->ow, &y0, &y1, &x0, &x1);
			for (int64_t a = y0; a < y1; a++) {
				for (int64_t b = x0; b < x1; b++) dx[a * g->w + b] += (float)(dy[j] / d);
			}
		}
	}
	free(order);
}

static int AvgPool2d_check(const fcall *c, char *err, size_t n) { return avgpool_check(c, err, n, false); }
static int AvgPool2d_run(const fcall *c) {
	pool g = pool_of(c->a[0].t, c->a[1].a, c->a[2].a, c->a[3].a, c->a[4].i);
	float *x = pack_f(c->a[0].t), *y = room(ft_numel(c->a[8].t), 4);
	average(&g, x, y, c->a[5].i, c->a[6].i);
	unpack_f(c->a[8].t, y);
	free(x), free(y);
	return 0;
}
FOP(AvgPool2d) = {.check = AvgPool2d_check, .run = AvgPool2d_run};

static int AvgPool2dBackward_check(const fcall *c, char *err, size_t n) { return avgpool_check(c, err, n, true); }
static int AvgPool2dBackward_run(const fcall *c) {
	pool g = pool_of(c->a[9].t, c->a[2].a, c->a[3].a, c->a[4].a, c->a[5].i);
	float *dy = pack_f(c->a[0].t), *dx = room(ft_numel(c->a[9].t), 4);
	spread_back(c, &g, dy, dx, c->a[6].i, c->a[7].i);
	unpack_f(c->a[9].t, dx);
	free(dy), free(dx);
	return 0;
}
FOP(AvgPool2dBackward) = {.check = AvgPool2dBackward_check, .run = AvgPool2dBackward_run, .nondeterministic = true};

static void adaptive_shape(ck *k, const ft *x, const ft *y, const char *xn, const char *yn) {
	if (k->rc) return;
	ck_rank(k, x, xn, 4, 4);
	ck_image(k, x, xn);
	ck_rank(k, y, yn, 4, 4);
	ck_image(k, y, yn);
	ck_alike(k, x, xn, y, yn);
	if (!k->rc && (x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1])) ck_fail(k, ACLNN_PARAM, "%s differs from %s in its first two dims.", yn, xn);
}

static int AdaptiveAvgPool2d_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "self", D_FLOAT), *y = ck_t(&k, 2, "out", D_FLOAT);
	const farray *size = ck_array(&k, 1, "outputSize", 2, 2);
	adaptive_shape(&k, x, y, "self", "out");
	if (k.rc) return k.rc;
	const int64_t want[4] = {x->dims[0], x->dims[1], size->i[0], size->i[1]};
	ck_shape(&k, y, "out", 4, want);
	return k.rc;
}

// adaptive walks the windows of an adaptive pool; back spreads small over large.
static void adaptive(const fcall *c, const ft *large, const ft *small, bool back) {
	int64_t h = large->dims[2], w = large->dims[3], oh = small->dims[2], ow = small->dims[3], planes = large->dims[0] * large->dims[1], p = oh * ow;
	float *l = back ? room(ft_numel(large), 4) : pack_f(large), *s = back ? pack_f(small) : room(ft_numel(small), 4);
	int64_t *order = room(p, 8);
	for (int64_t j = 0; j < p; j++) order[j] = j;
	uint64_t state = c->seed;
	if (open_order(c)) shuffle(&state, order, p);
	for (int64_t i = 0; i < planes * p; i++) {
		int64_t j = order[i % p], y0 = j / ow * h / oh, y1 = ((j / ow + 1) * h + oh - 1) / oh, x0 = j % ow * w / ow, x1 = ((j % ow + 1) * w + ow - 1) / ow;
		float *plane = l + i / p * h * w, *at = s + i / p * p + j;
		double sum = 0, share = *at / (double)((y1 - y0) * (x1 - x0));
		for (int64_t a = y0; a < y1; a++) {
			for (int64_t b = x0; b < x1; b++) {
				if (back) plane[a * w + b] += (float)share;
				else sum += plane[a * w + b];
			}
		}
		if (!back) *at = (float)(sum / (double)((y1 - y0) * (x1 - x0)));
	}
	unpack_f(back ? large : small, back ? l : s);
	free(l), free(s), free(order);
}

static int AdaptiveAvgPool2d_run(const fcall *c) {
	adaptive(c, c->a[0].t, c->a[2].t, false);
	return 0;
}
FOP(AdaptiveAvgPool2d) = {.check = AdaptiveAvgPool2d_check, .run = AdaptiveAvgPool2d_run};

static int AdaptiveAvgPool2dBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *dy = ck_t(&k, 0, "gradOutput", D_FLOAT), *x = ck_t(&k, 1, "self", D_FLOAT), *dx = ck_t(&k, 2, "out", D_FLOAT);
	adaptive_shape(&k, x, dy, "self", "gradOutput");
	ck_same(&k, x, "self", dx, "out");
	ck_image(&k, dx, "out");
	ck_alike(&k, x, "self", dx, "out");
	return k.rc;
}
static int AdaptiveAvgPool2dBackward_run(const fcall *c) {
	adaptive(c, c->a[2].t, c->a[0].t, true);
	return 0;
}
FOP(AdaptiveAvgPool2dBackward) = {.check = AdaptiveAvgPool2dBackward_check, .run = AdaptiveAvgPool2dBackward_run, .nondeterministic = true};
