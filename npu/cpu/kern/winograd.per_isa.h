// Winograd convolution for one instruction set (Lavin and Gray, arXiv 1509.09308): the transforms of one line with 4+2 and 2+2 points, and the order of work.
// The points are 0, 1, -1 and infinity, or 0, the roots of 1/2 and 2 with both signs, and infinity. The usual 0, 1, -1, 2, -2 would need no roots, but double
// the error: results are sums of products that are larger than they are and cancel out.
#include "winograd.h"

#define R1 0.70710678f // the root of 1/2
#define R2 1.41421356f // the root of 2

INLINE void ISA(data_4)(const V d[6], V t[6]) {
	V a = d[4] - 2 * d[2], b = R1 * (d[3] - 2 * d[1]), e = d[4] - 0.5f * d[2], f = R2 * (d[3] - 0.5f * d[1]);
	t[0] = d[0] - 2.5f * d[2] + d[4];
	t[1] = a + b, t[2] = a - b, t[3] = e + f, t[4] = e - f;
	t[5] = d[1] - 2.5f * d[3] + d[5];
}
INLINE void ISA(result_4)(const V m[6], V y[4]) {
	V a = m[1] + m[2], b = R1 * (m[1] - m[2]), e = m[3] + m[4], f = R2 * (m[3] - m[4]);
	y[0] = m[0] + a + e, y[1] = b + f, y[2] = 0.5f * a + 2 * e, y[3] = 0.5f * b + 2 * f + m[5];
}
INLINE void ISA(weights_4)(const V w[3], V u[6]) {
	V a = (w[0] + 0.5f * w[2]) * (-2.0f / 3), b = w[1] * (R1 * -2.0f / 3), e = w[0] * (1.0f / 6) + w[2] * (1.0f / 3), f = w[1] * (R2 / 6);
	u[0] = w[0], u[1] = a + b, u[2] = a - b, u[3] = e + f, u[4] = e - f, u[5] = w[2];
}
INLINE void ISA(grad_4)(const V w[4], V u[6]) {
	V a = (w[0] + 0.5f * w[2]) * (-2.0f / 3), b = (w[1] + 0.5f * w[3]) * (R1 * -2.0f / 3);
	V e = w[0] * (1.0f / 6) + w[2] * (1.0f / 3), f = w[1] * (R2 / 6) + w[3] * (R2 / 3);
	u[0] = w[0], u[1] = a + b, u[2] = a - b, u[3] = e + f, u[4] = e - f, u[5] = w[3];
}
INLINE void ISA(dw_4)(const V m[6], V y[3]) {
	V a = m[1] + m[2], e = m[3] + m[4];
	y[0] = m[0] + a + e, y[1] = R1 * (m[1] - m[2]) + R2 * (m[3] - m[4]), y[2] = 0.5f * a + 2 * e + m[5];
}
#undef R1
#undef R2

INLINE void ISA(data_2)(const V d[4], V t[4]) { t[0] = d[0] - d[2], t[1] = d[1] + d[2], t[2] = d[2] - d[1], t[3] = d[3] - d[1]; }
INLINE void ISA(result_2)(const V m[4], V y[2]) { y[0] = m[0] + m[1] + m[2], y[1] = m[1] - m[2] + m[3]; }
INLINE void ISA(weights_2)(const V w[3], V u[4]) {
	V a = (w[0] + w[2]) * 0.5f, b = w[1] * 0.5f;
	u[0] = w[0], u[1] = a + b, u[2] = a - b, u[3] = w[2];
}
INLINE void ISA(grad_2)(const V w[2], V u[4]) { u[0] = w[0], u[1] = (w[0] + w[1]) * 0.5f, u[2] = (w[0] - w[1]) * 0.5f, u[3] = w[1]; }
INLINE void ISA(dw_2)(const V m[4], V y[3]) { y[0] = m[0] + m[1] + m[2], y[1] = m[1] - m[2], y[2] = m[1] + m[2] + m[3]; }

#define RES 4
#define N 6
#define TILED(name) ISA(name##_of_4)
#define LINE(name) ISA(name##_4)
#define E f32
#define EL float
#define M f32
#define ML float
#include "winograd.per_tile.h"

#define RES 2
#define N 4
#define TILED(name) ISA(name##_of_2)
#define LINE(name) ISA(name##_2)
#define E f32
#define EL float
#define M f32
#define ML float
#include "winograd.per_tile.h"

// In bf16 the larger tile has factors of both types.
#define RES 4
#define N 6
#define TILED(name) ISA(name##_of_4_wide)
#define LINE(name) ISA(name##_4)
#define E bf16
#define EL uint16_t
#define M f32
#define ML float
#include "winograd.per_tile.h"

#define RES 4
#define N 6
#define TILED(name) ISA(name##_of_4_bf16)
#define LINE(name) ISA(name##_4)
#define E bf16
#define EL uint16_t
#define M bf16
#define ML uint16_t
#include "winograd.per_tile.h"

#define RES 2
#define N 4
#define TILED(name) ISA(name##_of_2_bf16)
#define LINE(name) ISA(name##_2)
#define E bf16
#define EL uint16_t
#define M bf16
#define ML uint16_t
#include "winograd.per_tile.h"

#define CALL(name, ...)                                              \
	(g->tile == 2 ? g->bf16 ? ISA(name##_of_2_bf16)(g, __VA_ARGS__) : ISA(name##_of_2)(g, __VA_ARGS__) \
	 : !g->bf16   ? ISA(name##_of_4)(g, __VA_ARGS__)                  \
	 : g->cell == 4 ? ISA(name##_of_4_wide)(g, __VA_ARGS__) : ISA(name##_of_4_bf16)(g, __VA_ARGS__))

// What the parallel loops of one command share.
typedef struct {
	kern_cmd *c;
	const wino *g;
	int64_t tiles, points;
	int failed;
} ISA(wino_run);

// Memory of part q: 0 is the part's first matrix.
#define PART(q, at) ((void *)((char *)c->ws + g->common + (q) * g->part + (at)))

static void ISA(wino_weights)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ((ISA(wino_run) *)ctx)->c;
	const wino *g = (const wino *)c->v;
	lo *= 16, hi = hi * 16 < g->in ? hi * 16 : g->in;
	if (g->flip) CALL(flipped, c->p[1], c->ws, lo, hi, 0, g->out);
	else CALL(weights, c->p[1], c->ws, lo, hi, 0, g->out);
}

// Blocks need all tiles at once; threads make ranges of rows of the same matrices.
static void ISA(wino_data)(void *ctx, int64_t lo, int64_t hi) {
	const ISA(wino_run) *r = ctx;
	const kern_cmd *c = r->c;
	const wino *g = r->g;
	CALL(data, c->p[0], (void *)((char *)c->ws + lo * g->in * g->cell), lo, hi, r->tiles);
}

// conv: x, w, bias or null, y. A part's matrices: [0] the transformed input of a strip or the weights of a block, [second] the product.
static void ISA(wino_part)(void *ctx, int64_t lo, int64_t hi) {
	ISA(wino_run) *r = ctx;
	kern_cmd *c = r->c;
	const wino *g = r->g;
	for (int64_t q = lo; q < hi; q++) {
		void *a = PART(q, 0), *m = PART(q, g->second);
		for (int64_t s = g->strips * q / g->parts; s < g->strips * (q + 1) / g->parts && g->blocks == 1; s++) {
			int64_t t0 = r->tiles * s / g->strips, t1 = r->tiles * (s + 1) / g->strips;
			CALL(data, c->p[0], a, t0, t1, t1 - t0);
			if (product(c, q, 2, (t1 - t0) * g->strips < r->tiles)) __atomic_store_n(&r->failed, 1, __ATOMIC_RELAXED);
			CALL(result, m, c->p[3], c->p[2], t0, t1, 0, g->out);
		}
		for (int64_t b = g->blocks * q / g->parts; b < g->blocks * (q + 1) / g->parts && g->blocks > 1; b++) {
			int64_t o = b * g->width, wide = g->out - o < g->width ? g->out - o : g->width;
			if (g->flip) CALL(flipped, c->p[1], a, 0, g->in, o, wide);
			else CALL(weights, c->p[1], a, 0, g->in, o, wide);
			if (product(c, q, 2, wide < g->width)) __atomic_store_n(&r->failed, 1, __ATOMIC_RELAXED);
			CALL(result, m, c->p[3], c->p[2], 0, r->tiles, o, wide);
		}
	}
}

static int ISA(wino_conv)(kern_cmd *c, int nthreads) {
	const wino *g = (const wino *)c->v;
	ISA(wino_run) r = {c, g, g->images * g->rows * g->cols, (g->tile + 2) * (g->tile + 2), 0};
	if (g->blocks > 1) kern_for(nthreads, r.tiles, g->in * r.points, ISA(wino_data), &r);
	else kern_for(nthreads, (g->in + 15) / 16, 16 * g->out * r.points, ISA(wino_weights), &r);
	kern_for(nthreads, g->parts, INT64_MAX, ISA(wino_part), &r);
	return r.failed ? kern_fail(c, "a matrix product of a Winograd convolution failed") : 0;
}

// conv_bwd_weights: x, dy, dw, db or null. A part's matrices: [0] the transformed input of a strip, [second] the transformed dy, [third] the product.
// Strips: db of part q is in the common memory.
static void ISA(wino_part_dw)(void *ctx, int64_t lo, int64_t hi) {
	ISA(wino_run) *r = ctx;
	kern_cmd *c = r->c;
	const wino *g = r->g;
	for (int64_t q = lo; q < hi; q++) {
		void *z = PART(q, g->second);
		float *db = c->p[3];
		int64_t first = g->strips * q / g->parts;
		if (db && g->blocks == 1) memset(db = (float *)c->ws + q * g->out, 0, (size_t)g->out * 4);
		for (int64_t s = first; s < g->strips * (q + 1) / g->parts && g->blocks == 1; s++) {
			int64_t t0 = r->tiles * s / g->strips, t1 = r->tiles * (s + 1) / g->strips;
			CALL(data, c->p[0], PART(q, 0), t0, t1, t1 - t0);
			CALL(grad, c->p[1], z, db, t0, t1, 0, g->out);
			if (product(c, q, 4, ((t1 - t0) * g->strips < r->tiles) + 2 * (s > first))) __atomic_store_n(&r->failed, 1, __ATOMIC_RELAXED);
		}
		for (int64_t b = g->blocks * q / g->parts; b < g->blocks * (q + 1) / g->parts && g->blocks > 1; b++) {
			int64_t o = b * g->width, wide = g->out - o < g->width ? g->out - o : g->width;
			if (db) memset(db + o, 0, (size_t)wide * 4);
			CALL(grad, c->p[1], z, db, 0, r->tiles, o, wide);
			if (product(c, q, 4, wide < g->width)) __atomic_store_n(&r->failed, 1, __ATOMIC_RELAXED);
			CALL(dw, PART(q, g->third), 1, 0, c->p[2], 0, g->in, o, wide);
		}
	}
}

static void ISA(wino_dw)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ((ISA(wino_run) *)ctx)->c;
	const wino *g = (const wino *)c->v;
	CALL(dw, PART(0, g->third), g->parts, g->part / 4, c->p[2], lo, hi, 0, g->out);
}

static int ISA(wino_conv_bwd_weights)(kern_cmd *c, int nthreads) {
	const wino *g = (const wino *)c->v;
	ISA(wino_run) r = {c, g, g->images * g->rows * g->cols, (g->tile + 2) * (g->tile + 2), 0};
	if (g->blocks > 1) kern_for(nthreads, r.tiles, g->in * r.points, ISA(wino_data), &r);
	kern_for(nthreads, g->parts, INT64_MAX, ISA(wino_part_dw), &r);
	if (g->blocks == 1) {
		kern_for(nthreads, g->in, g->out * r.points, ISA(wino_dw), &r);
		float *db = c->p[3];
		for (int64_t o = 0; db && o < g->out; o++) {
			db[o] = 0;
			for (int64_t q = 0; q < g->parts; q++) db[o] += ((float *)c->ws)[q * g->out + o];
		}
	}
	return r.failed ? kern_fail(c, "a matrix product of a Winograd convolution failed") : 0;
}

#undef CALL
#undef PART
