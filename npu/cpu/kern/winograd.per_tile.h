// The transforms of Winograd convolution for one instruction set and one size of tile: RES results and N = RES + 2 points by axis. Included by
// winograd.per_isa.h, which defines the transforms of one line: LINE(data) B^T, LINE(result) A^T, LINE(weights) G, and for the weight gradient LINE(grad) and
// LINE(dw), which are G and A^T of F(3,RES). Matrices are [N·N][rows][channels]: point, then tile or channel, then channel. E is the type of pictures and
// weights (EL in C), M (ML) that of the products' factors; the products and the weight gradient are float32.

// Both axes: n lines of length from become lines of length to.
#define FIRST(f, from, to, n, load)                                   \
	V t[to][n];                                                       \
	UNROLL for (int j = 0; j < n; j++) {                              \
		V a[from], b[to];                                             \
		UNROLL for (int i = 0; i < from; i++) a[i] = (load);          \
		LINE(f)(a, b);                                                \
		UNROLL for (int i = 0; i < to; i++) t[i][j] = b[i];           \
	}
#define SECOND(f, rows, to, store)                                    \
	UNROLL for (int i = 0; i < rows; i++) {                           \
		V b[to];                                                      \
		LINE(f)(t[i], b);                                             \
		UNROLL for (int j = 0; j < to; j++) { V r = b[j]; store; }    \
	}
#define LOAD(t, p) (n == VL ? CAT(ld_, ISA(t))(p) : CAT(ldn_, ISA(t))(p, n))
#define STORE(t, p, v)                                                \
	do {                                                              \
		if (n == VL) CAT(st_, ISA(t))(p, v);                          \
		else CAT(stn_, ISA(t))(p, v, n);                              \
	} while (0)
#define LD(p) LOAD(f32, p)
#define ST(p, v) STORE(f32, p, v)
// Channels c … end by vectors of which at most so many lanes are adjacent in memory, then the rest.
#define CHANNELS(most, end, ...)                                      \
	do {                                                              \
		int64_t c = 0, adjacent = (most);                             \
		for (; adjacent >= VL && c + VL <= (end); c += VL) { const int n = VL; __VA_ARGS__; }                                  \
		for (int n_; c < (end); c += n_) { const int n = n_ = (int)((end) - c < adjacent ? (end) - c : adjacent); __VA_ARGS__; } \
	} while (0)
// The adjacent channels of a picture, and where a channel is.
#define ADJACENT(p) ((int64_t)1 << (p).shift)
#define AT(p, c) (((c) >> (p).shift) * (p).block + ((c) & (ADJACENT(p) - 1)))

// from: the pixels of a tile. Where edge, pixel k is at p[k] and has the channels' offset masked by m[k].
typedef struct {
	const EL *p[N * N];
	int64_t m[N * N];
	const EL *base;
	int64_t row, pixel;
} TILED(from);

#define PIXEL(k, i, j) LOAD(E, edge ? f->p[k] + (off & f->m[k]) : f->base + off + (i) * f->row + (j) * f->pixel)

INLINE void TILED(data1)(const TILED(from) *f, int64_t off, ML *v, int64_t point, int n, int edge) {
	FIRST(data, N, N, N, PIXEL(i * N + j, i, j))
	SECOND(data, N, N, STORE(M, v + (i * N + j) * point, r))
}

// find sets f for the size×size pixels at line y and column x, and returns whether some of them do not exist.
INLINE int TILED(find)(TILED(from) *f, const wino_picture *p, const EL *image, int64_t y, int64_t x, int size) {
	f->base = image + y * p->row + x * p->pixel, f->row = p->row, f->pixel = p->pixel;
	if (y >= 0 && x >= 0 && y + size <= p->h && x + size <= p->w) return 0;
	for (int i = 0; i < size; i++)
		for (int j = 0; j < size; j++) {
			int in = y + i >= 0 && y + i < p->h && x + j >= 0 && x + j < p->w;
			f->p[i * size + j] = in ? f->base + i * p->row + j * p->pixel : (const EL *)nothing;
			f->m[i * size + j] = in ? -1 : 0;
		}
	return 1;
}

// data transforms tiles t0 … t1-1 of x into v [N·N][tiles][in], from row 0 on.
NOINLINE void TILED(data)(const wino *g, const EL *x, ML *v, int64_t t0, int64_t t1, int64_t tiles) {
	int64_t point = tiles * g->in;
	for (int64_t t = t0; t < t1; t++, v += g->in) {
		wino_at at = where(g, t);
		TILED(from) from, *f = &from;
		int edge = TILED(find)(f, &g->x, x + at.image * g->x.image, at.y - g->top, at.x - g->left, N);
		if (edge) CHANNELS(ADJACENT(g->x), g->in, TILED(data1)(f, AT(g->x, c), v + c, point, n, 1));
		else CHANNELS(ADJACENT(g->x), g->in, TILED(data1)(f, AT(g->x, c), v + c, point, n, 0));
	}
}

INLINE V TILED(grad1)(const TILED(from) *f, int64_t off, ML *z, int64_t point, int n, int edge) {
	V sum = {0};
#define PLUS(v) ({ V p_ = (v); sum += p_; p_; })
	FIRST(grad, RES, N, RES, PLUS(PIXEL(i * RES + j, i, j)))
#undef PLUS
	SECOND(grad, N, N, STORE(M, z + (i * N + j) * point, r))
	return sum;
}

// grad transforms tiles of dy, channels o0 … o0+wide-1, into z [N·N][t1-t0][wide], and adds their sums to db if that is not null.
NOINLINE void TILED(grad)(const wino *g, const EL *dy, ML *z, float *db, int64_t t0, int64_t t1, int64_t o0, int64_t wide) {
	int64_t point = (t1 - t0) * wide;
	for (int64_t t = t0; t < t1; t++, z += wide) {
		wino_at at = where(g, t);
		TILED(from) from, *f = &from;
		int edge = TILED(find)(f, &g->y, dy + at.image * g->y.image, at.y, at.x, RES);
#define ONE(edge)                                                     \
	V s = TILED(grad1)(f, AT(g->y, o0 + c), z + c, point, n, edge);                \
	if (db) ST(db + o0 + c, LD(db + o0 + c) + s)
		if (edge) CHANNELS(ADJACENT(g->y), wide, ONE(1));
		else CHANNELS(ADJACENT(g->y), wide, ONE(0));
#undef ONE
	}
}

INLINE void TILED(result1)(const float *m, int64_t point, V bias, int relu, EL *y, const wino_picture *p, int64_t rows, int64_t cols, int n, int edge) {
	FIRST(result, N, RES, N, LD(m + (i * N + j) * point))
	SECOND(result, RES, RES, {
		r += bias;
		if (relu) r = ISA(vrelu)(r);
		if (!edge || (i < rows && j < cols)) STORE(E, y + i * p->row + j * p->pixel, r);
	})
}

// result transforms m [N·N][t1-t0][wide] back into channels o0 … of y.
NOINLINE void TILED(result)(const wino *g, const float *m, EL *y, const float *bias, int64_t t0, int64_t t1, int64_t o0, int64_t wide) {
	int64_t point = (t1 - t0) * wide;
	for (int64_t t = t0; t < t1; t++, m += wide) {
		wino_at at = where(g, t);
		EL *to = y + at.image * g->y.image + at.y * g->y.row + at.x * g->y.pixel;
		int64_t rows = g->y.h - at.y, cols = g->y.w - at.x;
#define ONE(edge)                                                                            \
	V b = {0};                                                                               \
	if (bias) b = LD(bias + o0 + c);                                                         \
	TILED(result1)(m + c, point, b, (int)g->relu, to + AT(g->y, o0 + c), &g->y, rows, cols, n, edge)
		if (rows < RES || cols < RES) CHANNELS(ADJACENT(g->y), wide, ONE(1));
		else CHANNELS(ADJACENT(g->y), wide, ONE(0));
#undef ONE
	}
}

INLINE void TILED(weights1)(const V w[9], ML *u, int64_t point, int n, int flip) {
	FIRST(weights, 3, N, 3, w[flip ? 8 - (i * 3 + j) : i * 3 + j])
	SECOND(weights, N, N, STORE(M, u + (i * N + j) * point, r))
}

// weights transforms rows k0 … k1-1 of w [9][in][out], channels o0 …, into u [N·N][in][wide].
NOINLINE void TILED(weights)(const wino *g, const EL *w, ML *u, int64_t k0, int64_t k1, int64_t o0, int64_t wide) {
	for (int64_t k = k0; k < k1; k++)
		CHANNELS(VL, wide, {
			V a[9];
			UNROLL for (int i = 0; i < 9; i++) a[i] = LOAD(E, w + (i * g->in + k) * g->out + o0 + c);
			TILED(weights1)(a, u + k * wide + c, g->in * wide, n, 0);
		});
}

// flipped does the same for the data gradient, from w [9][out][in]: blocks of VL × VL are transposed on the way.
NOINLINE void TILED(flipped)(const wino *g, const EL *w, ML *u, int64_t k0, int64_t k1, int64_t o0, int64_t wide) {
	for (int64_t k = k0; k < k1; k += VL) {
		int deep = k1 - k < VL ? (int)(k1 - k) : VL;
		CHANNELS(VL, wide, {
			V a[VL][9];
			for (int i = 0; i < 9; i++) {
				V b[VL];
				for (int r = 0; r < VL; r++) {
					const EL *p = w + (i * g->out + o0 + c + r) * g->in + k;
					b[r] = r >= n ? (V){0} : deep == VL ? CAT(ld_, ISA(E))(p) : CAT(ldn_, ISA(E))(p, deep);
				}
				ISA(vturn)(b);
				for (int r = 0; r < VL; r++) a[r][i] = b[r];
			}
			for (int r = 0; r < deep; r++) TILED(weights1)(a[r], u + (k + r) * wide + c, g->in * wide, n, 1);
		});
	}
}

INLINE void TILED(dw1)(const float *d, int64_t point, int64_t parts, int64_t part, float *w, int64_t tap, int n) {
	FIRST(dw, N, 3, N, ({
		const float *p_ = d + (i * N + j) * point;
		V s_ = LD(p_);
		for (int64_t q = 1; q < parts; q++) s_ += LD(p_ + q * part);
		s_;
	}))
	SECOND(dw, 3, 3, ST(w + (i * 3 + j) * tap, r))
}

// dw transforms rows k0 … k1-1 of the sum of parts' d [N·N][in][wide], part floats apart, into channels o0 … of w [9][in][out].
NOINLINE void TILED(dw)(const wino *g, const float *d, int64_t parts, int64_t part, float *w, int64_t k0, int64_t k1, int64_t o0, int64_t wide) {
	for (int64_t k = k0; k < k1; k++)
		CHANNELS(VL, wide, TILED(dw1)(d + k * wide + c, g->in * wide, parts, part, w + k * g->out + o0 + c, g->in * g->out, n));
}

#undef FIRST
#undef SECOND
#undef PIXEL
#undef CHANNELS
#undef ADJACENT
#undef AT
#undef LD
#undef ST
#undef LOAD
#undef STORE
#undef RES
#undef N
#undef TILED
#undef LINE
#undef E
#undef EL
#undef M
#undef ML
