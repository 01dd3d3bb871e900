// Included once per instruction set, after the vector operations of it; see quantise.go for what the functions compute. Products and sums are
// rounded as there: once where it says fused, else separately.

#define UNIT 32
#define NV (UNIT / LANES)

// The values to round: x with its residual added. They are kept in y where there is room, else computed twice.
#define SUM(j) vfma(ld16(old + i + (j) * LANES), f, ldf(x + i + (j) * LANES))

static inline __attribute__((always_inline)) uint32_t NAME(most)(const int feedback, size_t n, float *y, const float *x, const int16_t *old, V f) {
	I m0 = zero(), m1 = zero();
	for (size_t i = 0; i < n; i += UNIT)
		for (int j = 0; j < NV; j += 2) {
			V a = feedback ? SUM(j) : ldf(x + i + j * LANES), b = feedback ? SUM(j + 1) : ldf(x + i + (j + 1) * LANES);
			if (feedback && y) {
				stf(y + i + j * LANES, a);
				stf(y + i + (j + 1) * LANES, b);
			}
			m0 = imax(m0, a);
			m1 = imax(m1, b);
		}
	return hmax(m0, m1);
}

static inline __attribute__((always_inline)) void NAME(round)(
	const int feedback, size_t n, int8_t *q, const float *y, const float *x, const int16_t *old, V f, int16_t *neu, step s) {
	V inv = set1(s.inv), size = set1(s.size), fine = set1(s.fine);
	for (size_t i = 0; i < n; i += UNIT) {
		I k[NV], r[NV];
		for (int j = 0; j < NV; j++) {
			V v = !feedback ? ldf(x + i + j * LANES) : y ? ldf(y + i + j * LANES) : SUM(j);
			k[j] = cvt(vmul(v, inv));
			if (feedback)
				r[j] = cvt(vmul(less(v, cvtf(k[j]), size), fine));
		}
		st8(q + i, k);
		if (feedback)
			st16(neu + i, r);
	}
}

// Sizes of steps are found for several blocks before the values are rounded: together, and the divisions of one group wait for nothing.
#define AHEAD 8
#define KEEP 2048 // values of a group, at most

typedef float NAME(vf) __attribute__((vector_size(AHEAD * 4)));
typedef int32_t NAME(vi) __attribute__((vector_size(AHEAD * 4)));
typedef uint32_t NAME(vu) __attribute__((vector_size(AHEAD * 4)));

typedef struct {
	NAME(vi) size, inv, residual; // the bits of what step has, by block
	NAME(vf) fine;
} NAME(group_steps);

// together is steps for a group, without branches: positive floats compare as their bits do.
static inline __attribute__((always_inline)) void NAME(together)(NAME(group_steps) *s, const NAME(vi) *of, const int feedback, float back) {
	NAME(vi) most = *of;
	NAME(vf) m = (NAME(vf))most, size = m / 127.0f, inv = 127.0f / m;
	NAME(vi) bad = most >= 0x7f800000, good = (most >= 0x0d800000) & ~bad; // 0x1p-100f
	s->size = ((NAME(vi))size & good) | (0x7fc00000 & bad);
	s->inv = (NAME(vi))inv & good;
	if (!feedback)
		return;
	NAME(vi) p = (NAME(vi))((NAME(vu))(size * back) + 0x7fffff) & ~0x7fffff, low = p < 0x0a000000; // 0x1p-107f
	p = (p & ~low) | (0x0a000000 & low);
	NAME(vi) high = p > 0x7e800000; // 0x1p126f
	p = (p & ~high) | (0x7e800000 & high);
	NAME(vf) residual = (NAME(vf))p * 0x1p-15f;
	s->residual = (NAME(vi))residual & good;
	s->fine = (NAME(vf))(0x7f000000 - (NAME(vi))residual) * back;
}

static inline __attribute__((always_inline)) int NAME(group)(const int feedback, size_t n, size_t block, float *y, int8_t *q, float *scale,
	const float *x, const int16_t *old, const float *oldscale, int16_t *neu, float *newscale, float unit) {
	NAME(group_steps) s;
	NAME(vi) most = {0}, lane = {0, 1, 2, 3, 4, 5, 6, 7};
	int finite = 1;
	size_t blocks = n / block;
	for (size_t b = 0; b < blocks; b++) {
		size_t at = b * block;
		V f = set1(feedback ? oldscale[b] * unit : 0);
		int32_t m = NAME(most)(feedback, block, y ? y + at : 0, x + at, feedback ? old + at : 0, f);
		most |= (lane == (int32_t)b) & m; // by way of memory it would wait for all earlier stores
	}
	NAME(together)(&s, &most, feedback, 1.0f / unit);
	for (size_t b = 0; b < blocks; b++) {
		size_t at = b * block;
		V f = set1(feedback ? oldscale[b] * unit : 0);
		step one = {float_of(s.size[b]), float_of(s.inv[b]), 0, feedback ? s.fine[b] : 0};
		scale[b] = one.size;
		if (feedback)
			newscale[b] = float_of(s.residual[b]);
		if (one.inv)
			NAME(round)(feedback, block, q + at, y ? y + at : 0, x + at, feedback ? old + at : 0, f, feedback ? neu + at : 0, one);
		else { // not finite, or nothing
			finite &= one.size == 0;
			memset(q + at, 0, block);
			if (feedback)
				memset(neu + at, 0, block * 2);
		}
	}
	return finite;
}

static inline __attribute__((always_inline)) int NAME(quantise)(const int feedback, size_t n, size_t block, int8_t *q, float *scale, const float *x,
	const int16_t *old, const float *oldscale, int16_t *neu, float *newscale, float unit) {
	float y[KEEP] __attribute__((aligned(64)));
	size_t all = n / block, keep = n > 1 << 16 ? KEEP / 2 : KEEP, each = block < keep ? keep / block : 1, b = 0, rest = n % block;
	if (each > AHEAD)
		each = AHEAD;
	int finite = 1;
	for (; b < all; b += each) {
		size_t at = b * block, len = (all - b < each ? all - b : each) * block;
		if (feedback && block <= KEEP)
			finite &= NAME(group)(1, len, block, y, q + at, scale + b, x + at, old + at, oldscale + b, neu + at, newscale + b, unit);
		else if (feedback)
			finite &= NAME(group)(1, len, block, 0, q + at, scale + b, x + at, old + at, oldscale + b, neu + at, newscale + b, unit);
		else
			finite &= NAME(group)(0, len, block, 0, q + at, scale + b, x + at, 0, 0, 0, 0, unit);
	}
	if (!rest)
		return finite;
	// The last block is short: whole units of it, and a padded one.
	size_t even = rest & ~(size_t)(UNIT - 1), odd = rest - even;
	x += n - rest, q += n - rest, scale += all;
	if (feedback)
		old += n - rest, neu += n - rest, oldscale += all, newscale += all;
	float xr[UNIT] = {0};
	int16_t oldr[UNIT] = {0}, newr[UNIT];
	int8_t qr[UNIT];
	memcpy(xr, x + even, odd * 4);
	if (feedback)
		memcpy(oldr, old + even, odd * 2);
	V f = set1(feedback ? *oldscale * unit : 0);
	uint32_t m = NAME(most)(feedback, even, 0, x, old, f), m2 = NAME(most)(feedback, UNIT, 0, xr, oldr, f);
	step s = steps(m > m2 ? m : m2, feedback, 1.0f / unit);
	*scale = s.size;
	if (feedback)
		*newscale = s.residual;
	if (!s.inv) {
		memset(q, 0, rest);
		if (feedback)
			memset(neu, 0, rest * 2);
		return finite & (s.size == 0);
	}
	NAME(round)(feedback, even, q, 0, x, old, f, neu, s);
	NAME(round)(feedback, UNIT, qr, 0, xr, oldr, f, newr, s);
	memcpy(q + even, qr, odd);
	if (feedback)
		memcpy(neu + even, newr, odd * 2);
	return finite;
}

static int NAME(encode)(size_t n, size_t block, int8_t *q, float *scale, const float *x, const int16_t *old, const float *oldscale, int16_t *neu,
	float *newscale, float unit) {
	if (old)
		return NAME(quantise)(1, n, block, q, scale, x, old, oldscale, neu, newscale, unit);
	return NAME(quantise)(0, n, block, q, scale, x, 0, 0, 0, 0, unit);
}

static int NAME(decode)(size_t n, size_t block, float *dst, const int8_t *q, const float *scale) {
	int finite = 1;
	for (size_t from = 0; from < n; from += block, scale++) {
		size_t to = from + block < n ? from + block : n, i = from;
		V s = set1(*scale);
		finite &= *scale < INFINITY;
		for (; i + 2 * LANES <= to; i += 2 * LANES) {
			stf(dst + i, vmul(ld8(q + i), s));
			stf(dst + i + LANES, vmul(ld8(q + i + LANES), s));
		}
		for (; i < to; i++)
			dst[i] = (float)q[i] * *scale;
	}
	return finite;
}

// tile adds m vectors from i on.
static inline __attribute__((always_inline)) void NAME(tile)(
	const int m, size_t i, float *dst, const int8_t *q, const char *scale, size_t stride, const int ranks, int own) {
	V a[8];
#pragma GCC unroll 8
	for (int j = 0; j < m; j++)
		a[j] = zerof();
#pragma GCC unroll 4
	for (int r = 0; r < ranks; r++) {
		V s = r == own ? zerof() : set1(*(const float *)(scale + r * stride));
		const int8_t *p = q + r * stride + i;
#pragma GCC unroll 8
		for (int j = 0; j < m; j++) {
			V v = r == own ? ldf(dst + i + j * LANES) : vmul(ld8(p + j * LANES), s);
			a[j] = r ? vadd(a[j], v) : v;
		}
	}
#pragma GCC unroll 8
	for (int j = 0; j < m; j++)
		stf(dst + i + j * LANES, a[j]);
}

// SOON is how many values ahead of their sum quantised parts are fetched.
#define SOON 256

static inline __attribute__((always_inline)) void NAME(sums)(
	size_t n, size_t block, float *dst, const int8_t *q, const float *scale, size_t stride, const int ranks, int own) {
	for (size_t from = 0, b = 0; from < n; from += block, b++) {
		size_t to = from + block < n ? from + block : n, i = from;
		const char *s = (const char *)(scale + b);
		if (ranks > 2) // more streams than the processor follows by itself across pages
			for (int r = 0; r < ranks; r++)
				for (size_t k = 0; k < to - from; k += 64)
					__builtin_prefetch(q + r * stride + from + SOON + k);
		for (; i + TILE * LANES <= to; i += TILE * LANES)
			NAME(tile)(TILE, i, dst, q, s, stride, ranks, own);
		for (; i + LANES <= to; i += LANES)
			NAME(tile)(1, i, dst, q, s, stride, ranks, own);
		for (; i < to; i++) {
			float a = 0;
			for (int r = 0; r < ranks; r++) {
				float v = r == own ? dst[i] : (float)q[r * stride + i] * *(const float *)(s + r * stride);
				a = r ? a + v : v;
			}
			dst[i] = a;
		}
	}
}

static void NAME(sum)(size_t n, size_t block, float *dst, const int8_t *q, const float *scale, size_t stride, int ranks, int own) {
#define FEW(r, o)                                                                                                      \
	if (ranks == r && own == o) {                                                                                      \
		NAME(sums)(n, block, dst, q, scale, stride, r, o);                                                             \
		return;                                                                                                        \
	}
	FEW(2, 0) FEW(2, 1) FEW(3, 0) FEW(3, 1) FEW(3, 2) FEW(4, 0) FEW(4, 1) FEW(4, 2) FEW(4, 3)
#undef FEW
	NAME(sums)(n, block, dst, q, scale, stride, ranks, own);
}

static void NAME(narrow)(int bf, size_t n, uint16_t *dst, const float *src, float by) {
	size_t i = 0;
	V s = set1(by);
	if (bf && by == 1)
		for (; i + 2 * LANES <= n; i += 2 * LANES)
			stb(dst + i, ldf(src + i), ldf(src + i + LANES));
	else if (bf)
		for (; i + 2 * LANES <= n; i += 2 * LANES)
			stb(dst + i, vmul(ldf(src + i), s), vmul(ldf(src + i + LANES), s));
	else
		for (; i + 2 * LANES <= n; i += 2 * LANES) {
			sth(dst + i, vmul(ldf(src + i), s));
			sth(dst + i + LANES, vmul(ldf(src + i + LANES), s));
		}
	for (; i < n; i++)
		dst[i] = bf ? to_bf16(src[i] * by) : to_f16(src[i] * by);
}

static int NAME(widen)(int bf, size_t n, float *dst, const uint16_t *src, float by) {
	size_t i = 0;
	V s = set1(by);
	H m = zeroh();
	if (bf)
		for (; i + 2 * LANES <= n; i += 2 * LANES) {
			m = mosth(m, src + i);
			stf(dst + i, vmul(ldb(src + i), s));
			stf(dst + i + LANES, vmul(ldb(src + i + LANES), s));
		}
	else
		for (; i + 2 * LANES <= n; i += 2 * LANES) {
			m = mosth(m, src + i);
			stf(dst + i, vmul(ldh(src + i), s));
			stf(dst + i + LANES, vmul(ldh(src + i + LANES), s));
		}
	uint16_t each[sizeof(H) / 2], top = 0;
	memcpy(each, &m, sizeof m);
	for (size_t j = 0; j < sizeof(H) / 2; j++)
		top = each[j] > top ? each[j] : top;
	for (; i < n; i++) {
		top = (src[i] & 0x7fff) > top ? src[i] & 0x7fff : top;
		dst[i] = (bf ? from_bf16(src[i]) : from_f16(src[i])) * by;
	}
	return top < (bf ? 0x7f80 : 0x7c00);
}

// The sums of numbers of 16 bits, in the order of the sources, rounded once. dst may be a source.
static inline __attribute__((always_inline)) void NAME(adds)(const int bf, size_t from, size_t n, uint16_t *dst, void *const *src, const int nsrc) {
	size_t i = from;
	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		V a = zerof(), b = zerof();
#pragma GCC unroll 4
		for (int k = 0; k < nsrc; k++) {
			const uint16_t *p = (const uint16_t *)src[k] + i;
			V c = bf ? ldb(p) : ldh(p), d = bf ? ldb(p + LANES) : ldh(p + LANES);
			a = k ? vadd(a, c) : c;
			b = k ? vadd(b, d) : d;
		}
		if (bf)
			stb(dst + i, a, b);
		else {
			sth(dst + i, a);
			sth(dst + i + LANES, b);
		}
	}
	for (; i < n; i++) {
		float a = 0;
		for (int k = 0; k < nsrc; k++) {
			uint16_t h = ((const uint16_t *)src[k])[i];
			float c = bf ? from_bf16(h) : from_f16(h);
			a = k ? a + c : c;
		}
		dst[i] = bf ? to_bf16(a) : to_f16(a);
	}
}

static void NAME(add)(int bf, size_t from, size_t n, uint16_t *dst, void *const *src, int nsrc) {
#define FEW(k)                                                                                                         \
	if (nsrc == k) {                                                                                                   \
		if (bf)                                                                                                        \
			NAME(adds)(1, from, n, dst, src, k);                                                                       \
		else                                                                                                           \
			NAME(adds)(0, from, n, dst, src, k);                                                                       \
		return;                                                                                                        \
	}
	FEW(2) FEW(3) FEW(4)
#undef FEW
	if (bf)
		NAME(adds)(1, from, n, dst, src, nsrc);
	else
		NAME(adds)(0, from, n, dst, src, nsrc);
}

static const codec NAME(codec) __attribute__((unused)) = {NAME(encode), NAME(decode), NAME(sum), NAME(narrow), NAME(widen), NAME(add)};

#undef SUM
#undef KEEP
#undef AHEAD
#undef SOON
#undef UNIT
#undef NV
#undef NAME
#undef V
#undef I
#undef LANES
#undef ldf
#undef stf
#undef vadd
#undef vmul
#undef set1
#undef zero
#undef cvt
#undef cvtf
#undef imax
#undef hmax
#undef ld8
#undef ld16
#undef st8
#undef st16
#undef ldh
#undef sth
#undef ldb
#undef stb
#undef less
#undef vfma
#undef H
#undef zeroh
#undef zerof
#undef mosth
#undef TILE
