// Convolution and its gradients by im2col and a matrix product per image and group. One spatial dim (NCL) counts as two with a height of 1.
#include "op.h"

typedef struct geometry {
	int64_t n, c, h, w, o, oh, ow, kh, kw, groups;
	int64_t sh, sw, dh, dw, top, left, bottom, right;
} geometry;

// window reads an array of 2 numbers (of 1 for NCL).
static void window(const farray *a, bool line, int64_t *h, int64_t *w, int64_t rest) {
	*h = line ? rest : a->i[0];
	*w = line ? a->i[0] : a->n > 1 ? a->i[1] : a->i[0];
}

static geometry geometry_of(const ft *x, const ft *w, const farray *stride, const farray *pad, const farray *dilation, int64_t groups) {
	bool line = x->nd == 3;
	geometry g = {.n = x->dims[0], .c = x->dims[1], .h = line ? 1 : x->dims[2], .w = x->dims[x->nd - 1], .o = w->dims[0], .groups = groups};
	g.kh = line ? 1 : w->dims[2];
	g.kw = w->dims[w->nd - 1];
	window(stride, line, &g.sh, &g.sw, 1);
	window(dilation, line, &g.dh, &g.dw, 1);
	if (pad->n == 4) { // top, bottom, left, right
		g.top = pad->i[0], g.bottom = pad->i[1], g.left = pad->i[2], g.right = pad->i[3];
	} else {
		window(pad, line, &g.top, &g.left, 0);
		g.bottom = g.top, g.right = g.left;
	}
	g.oh = (g.h + g.top + g.bottom - g.dh * (g.kh - 1) - 1) / g.sh + 1;
	g.ow = (g.w + g.left + g.right - g.dw * (g.kw - 1) - 1) / g.sw + 1;
	return g;
}

static void numbers(ck *k, const farray *a, const char *name, int64_t lo, int64_t hi) {
	for (int64_t i = 0; !k->rc && i < a->n; i++) ck_between(k, name, a->i[i], lo, hi);
}

// conv_check: what forward and backward ask in common. The arrays stand at stride, padding, dilation.
static void conv_check(ck *k, const ft *x, const ft *w, const ft *y, const char *yn, int at, int64_t groups, bool transposed) {
	if (k->rc) return;
	ck_image(k, x, "input");
	ck_rank(k, w, "weight", x->nd, x->nd);
	ck_image(k, w, "weight");
	ck_rank(k, y, yn, x->nd, x->nd);
	ck_image(k, y, yn);
	ck_alike(k, x, "input", w, "weight");
	int64_t spatial = x->nd - 2;
	const farray *stride = ck_array(k, at, "stride", spatial, spatial), *pad = ck_array(k, at + 1, "padding", spatial, x->nd == 4 ? 4 : 1);
	const farray *dilation = ck_array(k, at + 2, "dilation", spatial, spatial), *opad = ck_array(k, at + 4, "outputPadding", spatial, spatial);
	if (k->rc) return;
	if (pad->n == 3) ck_fail(k, ACLNN_PARAM, "padding length 3 is illegal, should be 2 or 4.");
	numbers(k, stride, "stride", 1, 63);
	numbers(k, pad, "padding", 0, 255);
	numbers(k, dilation, "dilation", 1, 255);
	numbers(k, opad, "outputPadding", 0, 0);
	if (transposed) ck_fail(k, ACLNN_NO_KERNEL, "transposed convolution: no kernel here.");
	ck_between(k, "groups", groups, 1, 65535);
	if (k->rc) return;
	if (x->dims[1] != w->dims[1] * groups) ck_fail(k, ACLNN_PARAM, "input channel %lld should be weight channel %lld * groups %lld.",
		(long long)x->dims[1], (long long)w->dims[1], (long long)groups);
	if (w->dims[0] % groups) ck_fail(k, ACLNN_PARAM, "out channel %lld is no multiple of groups %lld.", (long long)w->dims[0], (long long)groups);
	if (k->rc) return;
	geometry g = geometry_of(x, w, stride, pad, dilation, groups);
	if (g.oh < 1 || g.ow < 1) ck_fail(k, ACLNN_PARAM, "the kernel is larger than the padded input.");
	const int64_t square[4] = {g.n, g.o, g.oh, g.ow}, strip[3] = {g.n, g.o, g.ow};
	ck_shape(k, y, yn, x->nd, x->nd == 4 ? square : strip);
}

static int Convolution_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *x = ck_t(&k, 0, "input", D_FLOAT), *w = ck_t(&k, 1, "weight", D_FLOAT), *b = ck_opt(&k, 2, "bias", D_FLOAT), *y = ck_t(&k, 9, "output", D_FLOAT);
	conv_check(&k, x, w, y, "output", 3, c->a[8].i, c->a[6].i);
	if (k.rc) return k.rc;
	ck_alike(&k, x, "input", y, "output");
	ck_alike(&k, x, "input", b, "bias");
	ck_shape(&k, b, "bias", 1, w->dims);
	ck_cube(&k, x, c->a[10].i);
	return k.rc;
}

// columns spreads a group of an image: row (channel, ky, kx), column (oy, ox). back adds them up again.
static void columns(const geometry *g, float *x, float *col, bool back) {
	int64_t p = g->oh * g->ow;
	for (int64_t r = 0; r < g->c / g->groups * g->kh * g->kw; r++) {
		int64_t kx = r % g->kw, ky = r / g->kw % g->kh;
		float *plane = x + r / g->kw / g->kh * g->h * g->w, *to = col + r * p;
		for (int64_t oy = 0; oy < g->oh; oy++, to += g->ow) {
			int64_t iy = oy * g->sh - g->top + ky * g->dh;
			bool outside = iy < 0 || iy >= g->h;
			for (int64_t ox = 0; ox < g->ow; ox++) {
				int64_t ix = ox * g->sw - g->left + kx * g->dw;
				bool in = !outside && ix >= 0 && ix < g->w;
				if (back && in) plane[iy * g->w + ix] += to[ox];
				else if (!back) to[ox] = in ? plane[iy * g->w + ix] : 0;
			}
		}
	}
}

// pointwise: the image is its own matrix of columns.
static bool pointwise(const geometry *g) {
	return g->kh == 1 && g->kw == 1 && g->sh == 1 && g->sw == 1 && g->top + g->bottom + g->left + g->right == 0;
}

static float *rounded(const ft *t, int64_t cube) {
	float *v = pack_f(t);
	cube_round(v, ft_numel(t), t->dtype, cube);
	return v;
}

static int Convolution_run(const fcall *c) {
	const ft *x = c->a[0].t, *w = c->a[1].t, *y = c->a[9].t;
	geometry g = geometry_of(x, w, c->a[3].a, c->a[4].a, c->a[5].a, c->a[8].i);
	int64_t p = g.oh * g.ow, ck = g.c / g.groups * g.kh * g.kw, og = g.o / g.groups;
	float *px = rounded(x, c->a[10].i), *pw = rounded(w, c->a[10].i), *py = room(ft_numel(y), 4), *col = room(ck * p, 4);
	float *bias = c->a[2].t ? pack_f(c->a[2].t) : NULL;
	for (int64_t i = 0; i < g.n * g.groups; i++) {
		int64_t group = i % g.groups;
		float *image = px + i * (g.c / g.groups) * g.h * g.w, *m = image, *to = py + i * og * p;
		if (!pointwise(&g)) columns(&g, image, m = col, false);
		for (int64_t j = 0; bias && j < og * p; j++) to[j] = bias[group * og + j / p];
		gemm(og, p, ck, pw + group * og * ck, ck, 1, m, p, 1, bias ? 1 : 0, to, p);
	}
	unpack_f(y, py);
	free(px), free(pw), free(py), free(col), free(bias);
	return 0;
}

static int64_t Convolution_ws(const fcall *c) { return ws_of(c->a[9].t); }
FOP(Convolution) = {.check = Convolution_check, .run = Convolution_run, .workspace = Convolution_ws};

static int ConvolutionBackward_check(const fcall *c, char *err, size_t n) {
	CK(k);
	ft *dy = ck_t(&k, 0, "gradOutput", D_FLOAT), *x = ck_t(&k, 1, "input", D_FLOAT), *w = ck_t(&k, 2, "weight", D_FLOAT);
	const farray *mask = ck_array(&k, 10, "outputMask", 3, 3);
	conv_check(&k, x, w, dy, "gradOutput", 4, c->a[9].i, c->a[7].i);
	ck_alike(&k, dy, "gradOutput", x, "input");
	if (k.rc) return k.rc;
	for (int i = 2; i < w->nd; i++) ck_between(&k, "weight's kernel", w->dims[i], 1, 255);
	ft *dx = mask->b[0] ? ck_t(&k, 12, "gradInput", D_FLOAT) : NULL, *dw = mask->b[1] ? ck_t(&k, 13, "gradWeight", D_FLOAT) : NULL;
	ft *db = mask->b[2] ? ck_t(&k, 14, "gradBias", D_FLOAT) : NULL;
	const farray *sizes = mask->b[2] ? ck_array(&k, 3, "biasSizes", 1, 1) : NULL;
	if (k.rc) return k.rc;
	if (sizes && sizes->i[0] != w->dims[0]) ck_fail(&k, ACLNN_PARAM, "biasSizes is %lld, expected %lld.", (long long)sizes->i[0], (long long)w->dims[0]);
	ck_same(&k, x, "input", dx, "gradInput");
	ck_image(&k, dx, "gradInput");
	ck_alike(&k, x, "input", dx, "gradInput");
	ck_same(&k, w, "weight", dw, "gradWeight");
	ck_image(&k, dw, "gradWeight");
	if (dw && dw->dtype != DT_F32) ck_alike(&k, w, "weight", dw, "gradWeight");
	if (c->soc == SOC_950) ck_alike(&k, w, "weight", dw, "gradWeight");
	ck_shape(&k, db, "gradBias", 1, w->dims);
	ck_alike(&k, dy, "gradOutput", db, "gradBias");
	ck_cube(&k, x, c->a[11].i);
	return k.rc;
}

static void grad_input(const fcall *c, const geometry *g, const float *dy) {
	int64_t p = g->oh * g->ow, ck = g->c / g->groups * g->kh * g->kw, og = g->o / g->groups;
	const ft *dx = c->a[12].t;
	float *pw = rounded(c->a[2].t, c->a[11].i), *px = room(ft_numel(dx), 4), *col = room(ck * p, 4);
	for (int64_t i = 0; i < g->n * g->groups; i++) {
		float *image = px + i * (g->c / g->groups) * g->h * g->w, *m = pointwise(g) ? image : col;
		gemm(ck, p, og, pw + i % g->groups * og * ck, 1, ck, dy + i * og * p, p, 1, 0, m, p);
		if (m == col) columns(g, image, col, true);
	}
	unpack_f(dx, px);
	free(pw), free(px), free(col);
}

static void grad_weight(const fcall *c, const geometry *g, const float *dy) {
	int64_t p = g->oh * g->ow, ck = g->c / g->groups * g->kh * g->kw, og = g->o / g->groups;
	const ft *dw = c->a[13].t;
	float *px = rounded(c->a[1].t, c->a[11].i), *pw = room(ft_numel(dw), 4), *col = room(ck * p, 4);
	int64_t *order = room(g->n, 8);
	for (int64_t i = 0; i < g->n; i++) order[i] = i;
	if (open_order(c)) { // the images' shares are added as cores come by
		uint64_t state = c->seed;
		shuffle(&state, order, g->n);
	}
	for (int64_t i = 0; i < g->n * g->groups; i++) {
		int64_t group = i % g->groups, at = order[i / g->groups] * g->groups + group;
		float *image = px + at * (g->c / g->groups) * g->h * g->w, *m = image;
		if (!pointwise(g)) columns(g, image, m = col, false);
		gemm(og, ck, p, dy + at * og * p, p, 1, m, 1, p, 1, pw + group * og * ck, ck);
	}
	// With groups the library takes 16-bit operands' gradient through f16 on its way to f32.
	if (g->groups > 1 && dw->dtype == DT_F32 && is_half(c->a[2].t->dtype)) round_f(pw, ft_numel(dw), DT_F16);
	unpack_f(dw, pw);
	free(px), free(pw), free(col), free(order);
}

static void grad_bias(const fcall *c, const geometry *g, const float *dy) {
	int64_t p = g->oh * g->ow;
	double *part = room(g->n, sizeof *part), *db = room(g->o, sizeof *db);
	for (int64_t o = 0; o < g->o; o++) {
		for (int64_t i = 0; i < g->n; i++) {
			const float *row = dy + (i * g->o + o) * p;
			part[i] = 0;
			for (int64_t j = 0; j < p; j++) part[i] += row[j];
		}
		db[o] = sum_parts(c, (uint64_t)o, part, g->n);
	}
	unpack_d(c->a[14].t, db);
	free(part), free(db);
}

static int ConvolutionBackward_run(const fcall *c) {
	geometry g = geometry_of(c->a[1].t, c->a[2].t, c->a[4].a, c->a[5].a, c->a[6].a, c->a[9].i);
	const bool *mask = c->a[10].a->b;
	float *plain = pack_f(c->a[0].t), *dy = rounded(c->a[0].t, c->a[11].i);
	if (mask[0]) grad_input(c, &g, dy);
	if (mask[1]) grad_weight(c, &g, dy);
	if (mask[2]) grad_bias(c, &g, plain);
	free(plain), free(dy);
	return 0;
}

static int64_t ConvolutionBackward_ws(const fcall *c) { return ws_of(c->a[1].t) + 2 * ws_of(c->a[2].t); }
FOP(ConvolutionBackward) = {.check = ConvolutionBackward_check, .run = ConvolutionBackward_run, .workspace = ConvolutionBackward_ws, .nondeterministic = true};
