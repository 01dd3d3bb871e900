//go:build cgo && linux && (amd64 || arm64)

// Ops that move elements without interpreting them: one build serves all instruction sets.
#include "kern.h"
#include <string.h>

// copy: y[dst] = x[src] over dims. v holds the dims, the strides of x, the strides of y, in elements; n[0] is the number of dims, n[1] the size of an
// element, n[2] and n[3] where x and y begin, n[4] the bytes of y to clear first. Adjacent dims are merged if both strides allow it, dims are
// ordered by y's stride, and y's last stride is 1 unless single elements are copied.
typedef struct {
	kern_cmd *c;
	int64_t outer; // dims that are traversed by index
} copy_plan;

#define SIZES(CASE)              \
	switch (size) {              \
	case 1: CASE(uint8_t) break; \
	case 2: CASE(uint16_t) break; \
	case 4: CASE(uint32_t) break; \
	default: CASE(uint64_t)      \
	}

// One line: m elements.
static void line(char *y, const char *x, int64_t size, int64_t m, int64_t sx, int64_t sy) {
	if (sx == 1 && sy == 1) {
		memcpy(y, x, (size_t)(m * size));
		return;
	}
#define CASE(T)                                                                          \
	{                                                                                    \
		for (int64_t i = 0; i < m; i++) ((T *)y)[i * sy] = ((const T *)x)[i * sx];       \
	}
	SIZES(CASE)
#undef CASE
}

// A tile of two dims, y contiguous in the second and x in the first, so that each cache line of x is fully used while it is cached.
static void tile(char *y, const char *x, int64_t size, int64_t a, int64_t b, int64_t xb, int64_t ya) {
	enum { T_ = 16 };
#define CASE(T)                                                                          \
	{                                                                                    \
		for (int64_t i0 = 0; i0 < a; i0 += T_)                                           \
			for (int64_t j0 = 0; j0 < b; j0 += T_)                                       \
				for (int64_t i = i0; i < a && i < i0 + T_; i++)                          \
					for (int64_t j = j0; j < b && j < j0 + T_; j++)                      \
						((T *)y)[i * ya + j] = ((const T *)x)[i + j * xb];               \
	}
	SIZES(CASE)
#undef CASE
}

static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

// A unit of work is part of a line or of a tile.
enum { LINE = 65536, STRIPE = 64 };

static void copy_range(void *ctx, int64_t lo, int64_t hi) {
	const copy_plan *p = ctx;
	const kern_cmd *c = p->c;
	int64_t nd = c->n[0], size = c->n[1], tiles = p->outer == nd - 2;
	const int64_t *dims = c->v, *sx = dims + nd, *sy = sx + nd;
	int64_t walk = p->outer, step = tiles ? STRIPE : LINE, per = parts(dims[walk], step);
	for (int64_t k = lo; k < hi; k++) {
		int64_t q = k / per, i = k % per * step, m = dims[walk] - i < step ? dims[walk] - i : step;
		int64_t ox = c->n[2] + i * sx[walk], oy = c->n[3] + i * sy[walk];
		for (int64_t d = p->outer - 1; d >= 0; d--) {
			ox += q % dims[d] * sx[d], oy += q % dims[d] * sy[d];
			q /= dims[d];
		}
		const char *x = (const char *)c->p[0] + ox * size;
		char *y = (char *)c->p[1] + oy * size;
		if (tiles)
			tile(y, x, size, m, dims[nd - 1], sx[nd - 1], sy[nd - 2]);
		else
			line(y, x, size, m, sx[nd - 1], sy[nd - 1]);
	}
}

static int copy(kern_cmd *c, int nthreads) {
	int64_t nd = c->n[0];
	if (c->n[4]) memset(c->p[1], 0, (size_t)c->n[4]);
	const int64_t *dims = c->v, *sx = dims + nd, *sy = sx + nd;
	copy_plan p = {c, nd - 1};
	if (nd >= 2 && sy[nd - 1] == 1 && sx[nd - 2] == 1 && sx[nd - 1] > 1) p.outer = nd - 2;
	int64_t units = parts(dims[p.outer], p.outer == nd - 2 ? STRIPE : LINE);
	for (int64_t d = 0; d < p.outer; d++) units *= dims[d];
	int64_t total = 1;
	for (int64_t d = 0; d < nd; d++) total *= dims[d];
	if (total == 0) return 0;
	kern_for(nthreads, units, total / units, copy_range, &p);
	return 0;
}

// concat: n[0] is the number of inputs, n[1] the number of rounds; v holds the bytes that each input contributes per round. The output is argument n[0].
static void concat_range(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t turn = 0;
	for (int64_t i = 0; i < c->n[0]; i++) turn += c->v[i];
	char *y = (char *)c->p[c->n[0]] + lo * turn;
	for (int64_t k = lo; k < hi; k++)
		for (int64_t i = 0; i < c->n[0]; y += c->v[i], i++) memcpy(y, (const char *)c->p[i] + k * c->v[i], (size_t)c->v[i]);
}

static int concat(kern_cmd *c, int nthreads) {
	int64_t turn = 0;
	for (int64_t i = 0; i < c->n[0]; i++) turn += c->v[i];
	kern_for(nthreads, c->n[1], turn / 4, concat_range, c);
	return 0;
}

// fill: n[0] elements of n[1] bytes with the bits in n[2].
static void fill_range(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t size = c->n[1], from = lo * 4096, to = hi * 4096 < c->n[0] ? hi * 4096 : c->n[0];
#define CASE(T)                                                           \
	{                                                                     \
		T v = (T)c->n[2];                                                 \
		for (int64_t i = from; i < to; i++) ((T *)c->p[0])[i] = v;        \
	}
	SIZES(CASE)
#undef CASE
}

static int fill(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 4095) / 4096, 4096, fill_range, c);
	return 0;
}

kern_table kern_copy = {copy, copy, copy};
kern_table kern_concat = {concat, concat, concat};
kern_table kern_fill = {fill, fill, fill};
