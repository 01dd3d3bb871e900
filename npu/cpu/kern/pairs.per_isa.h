// Weight gradients of convolutions in bf16 for one instruction set: dw = dyᵀ·x, summed over pixels. The processor multiplies two pairs of bf16 and adds both
// products to a float32. Pixels are the short side of both factors in memory, so two pixels are interleaved by channel, of x and of dy, a strip at a time; the
// strip stays in the cache, where some channels of x meet all channels of dy. An element of dw is the sum over pairs in their order, whatever the blocks are.

// Interleaves n channels of a pair of pixels; null is a pixel of zeros.
INLINE void ISA(pairs_pixels)(const uint16_t *a, const uint16_t *b, int64_t n, uint32_t *to) {
	for (int64_t k = 0; k < n; k += PAIRS_STEP) {
		const uint16_t *u = a ? a + k : pairs_zeros, *v = b ? b + k : pairs_zeros;
#if VL == 16
		const __m512i low =
			_mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
		__m512i x = _mm512_loadu_si512(u), y = _mm512_loadu_si512(v);
		_mm512_storeu_si512(to + k, _mm512_permutex2var_epi16(x, low, y));
		_mm512_storeu_si512(to + k + 16, _mm512_permutex2var_epi16(x, _mm512_add_epi16(low, _mm512_set1_epi16(16)), y));
#else
		for (int i = 0; i < PAIRS_STEP; i++) to[k + i] = u[i] | (uint32_t)v[i] << 16;
#endif
	}
}

// The product of PAIRS_ROWS channels of dy (a) and PAIRS_COLS of x (b), added to the sums `from`, or to nothing. Pairs are an and bn words apart, rows of the
// results `to` next.
NOINLINE void ISA(pairs_tile)(const uint32_t *a, int64_t an, const uint32_t *b, int64_t bn, int64_t pairs, const float *from, float *to, int64_t next) {
#if VL == 16
	__m512 s[PAIRS_ROWS][2];
	UNROLL_ALL for (int i = 0; i < PAIRS_ROWS; i++) {
		s[i][0] = from ? _mm512_loadu_ps(from + i * PAIRS_COLS) : _mm512_setzero_ps();
		s[i][1] = from ? _mm512_loadu_ps(from + i * PAIRS_COLS + 16) : _mm512_setzero_ps();
	}
	for (int64_t k = 0; k < pairs; k++, a += an, b += bn) {
		__m512bh x = (__m512bh)_mm512_loadu_si512(b), y = (__m512bh)_mm512_loadu_si512(b + 16);
		UNROLL_ALL for (int i = 0; i < PAIRS_ROWS; i++) {
			__m512bh d = (__m512bh)_mm512_set1_epi32((int)a[i]);
			s[i][0] = _mm512_dpbf16_ps(s[i][0], d, x);
			s[i][1] = _mm512_dpbf16_ps(s[i][1], d, y);
		}
	}
	UNROLL_ALL for (int i = 0; i < PAIRS_ROWS; i++) {
		_mm512_storeu_ps(to + i * next, s[i][0]);
		_mm512_storeu_ps(to + i * next + 16, s[i][1]);
	}
#else
	for (int64_t i = 0; i < PAIRS_ROWS; i++) {
		float s[PAIRS_COLS];
		for (int j = 0; j < PAIRS_COLS; j++) s[j] = from ? from[i * PAIRS_COLS + j] : 0;
		for (int64_t k = 0; k < pairs; k++)
			for (int j = 0; j < PAIRS_COLS; j++) {
				uint32_t d = a[k * an + i], x = b[k * bn + j];
				uint16_t v[4] = {(uint16_t)d, (uint16_t)(d >> 16), (uint16_t)x, (uint16_t)(x >> 16)};
				s[j] += ISA(ld1_bf16)(v) * ISA(ld1_bf16)(v + 2) + ISA(ld1_bf16)(v + 1) * ISA(ld1_bf16)(v + 3);
			}
		memcpy(to + i * next, s, sizeof s);
	}
#endif
}

// A block of dw: output channels from o on, input channels from c on at tap (i, j).
NOINLINE void ISA(pairs_block)(const kern_cmd *c, const pairs *g, uint32_t *a, int64_t o, int64_t i, int64_t j, int64_t ch) {
	const uint16_t *x = c->p[0], *dy = c->p[1];
	int64_t rows = g->out - o < g->rows ? g->out - o : g->rows, columns = g->in - ch < g->columns ? g->in - ch : g->columns;
	int64_t next = g->kh * g->kw * g->in, all = g->images * g->oh * g->ow;
	float *dw = (float *)c->p[2] + o * next + (i * g->kw + j) * g->in + ch;
	int64_t an = g->rows + PAIRS_GAP, bn = g->columns + PAIRS_GAP;
	uint32_t *b = a + g->strip / 2 * an;
	float *sums = (float *)(b + g->strip / 2 * bn);
	pairs_at at = {0, 0, 0};
	for (int64_t p = 0; p < all; p += g->strip) {
		int64_t n = all - p < g->strip ? all - p : g->strip, pairs = (n + 1) / 2;
		for (int64_t k = 0; k < pairs; k++) {
			const uint16_t *d = dy + (p + 2 * k) * g->out + o, *u = pairs_under(g, x, at, i, j);
			pairs_next(g, &at);
			const uint16_t *v = pairs_under(g, x, at, i, j);
			pairs_next(g, &at);
			ISA(pairs_pixels)(d, 2 * k + 1 < n ? d + g->out : 0, rows, a + k * an);
			ISA(pairs_pixels)(u ? u + ch : 0, v ? v + ch : 0, columns, b + k * bn);
		}
		int64_t more = all - p - n < g->strip ? all - p - n : g->strip, tiles = rows / PAIRS_ROWS * columns / PAIRS_COLS, fetched = 0, tile = 0;
		int last = more == 0;
		pairs_at ahead = at;
		for (int64_t s = 0; s < columns; s += PAIRS_COLS)
			for (int64_t r = 0; r < rows; r += PAIRS_ROWS) {
				float *sum = sums + s * rows + r * PAIRS_COLS;
				for (tile++; fetched < more * tile / tiles; fetched++) {
					pairs_fetch(dy + (p + n + fetched) * g->out + o, rows);
					const uint16_t *u = pairs_under(g, x, ahead, i, j);
					if (u) pairs_fetch(u + ch, columns);
					pairs_next(g, &ahead);
				}
				ISA(pairs_tile)(a + r, an, b + s, bn, pairs, p > 0 ? sum : 0, last ? dw + r * next + s : sum, last ? next : PAIRS_COLS);
			}
	}
}

static void ISA(pairs_part)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	const pairs *g = (const pairs *)c->v;
	int64_t across = (g->in + g->columns - 1) / g->columns, blocks = (g->out + g->rows - 1) / g->rows * g->kh * g->kw * across;
	for (int64_t q = lo; q < hi; q++) {
		for (int64_t k = blocks * q / g->parts; k < blocks * (q + 1) / g->parts; k++) {
			int64_t tap = k / across % (g->kh * g->kw), o = k / across / (g->kh * g->kw) * g->rows;
			ISA(pairs_block)(c, g, (uint32_t *)((char *)c->ws + q * g->part), o, tap / g->kw, tap % g->kw, k % across * g->columns);
		}
	}
}

// pairs: x, dy, dw.
static int ISA(pairs)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, ((const pairs *)c->v)->parts, INT64_MAX, ISA(pairs_part), c);
	return 0;
}
