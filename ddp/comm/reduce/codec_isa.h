// Included once per instruction set, after the vector operations of it; see quantise.go for what the functions compute. Products and sums are
// rounded separately (no fused multiply-add), as in Go.

#define UNIT 32
#define NV (UNIT / LANES)

// One unit of x, with its residual added.
#define LOAD(j) (feedback ? vadd(ldf(x + i + (j) * LANES), vmul(ld16(old + i + (j) * LANES), f)) : ldf(x + i + (j) * LANES))

static inline __attribute__((always_inline)) uint32_t NAME(most)(const int feedback, size_t n, const float *x, const int16_t *old, V f) {
	I m0 = zero(), m1 = zero();
	for (size_t i = 0; i < n; i += UNIT)
		for (int j = 0; j < NV; j += 2) {
			m0 = imax(m0, LOAD(j));
			m1 = imax(m1, LOAD(j + 1));
		}
	return hmax(m0, m1);
}

static inline __attribute__((always_inline)) void NAME(round)(
	const int feedback, size_t n, int8_t *q, const float *x, const int16_t *old, V f, int16_t *neu, step s) {
	V inv = set1(s.inv), size = set1(s.size), fine = set1(s.fine);
	for (size_t i = 0; i < n; i += UNIT) {
		I k[NV], r[NV];
		for (int j = 0; j < NV; j++) {
			V y = LOAD(j);
			k[j] = cvt(vmul(y, inv));
			if (feedback)
				r[j] = cvt(vmul(vsub(y, vmul(cvtf(k[j]), size)), fine));
		}
		st8(q + i, k);
		if (feedback)
			st16(neu + i, r);
	}
}

static inline __attribute__((always_inline)) int NAME(quantise)(const int feedback, size_t n, size_t block, int8_t *q, float *scale, const float *x,
	const int16_t *old, const float *oldscale, int16_t *neu, float *newscale, float unit) {
	int finite = 1;
	for (size_t b = 0; b * block < n; b++, x += block, q += block, old += feedback ? block : 0, neu += feedback ? block : 0) {
		size_t len = n - b * block < block ? n - b * block : block, even = len & ~(size_t)(UNIT - 1), rest = len - even;
		V f = set1(feedback ? oldscale[b] * unit : 0);
		float xr[UNIT] = {0};
		int16_t or[UNIT] = {0}, nr[UNIT];
		int8_t qr[UNIT];
		uint32_t m = NAME(most)(feedback, even, x, old, f), m2 = 0;
		if (rest) {
			memcpy(xr, x + even, rest * 4);
			if (feedback)
				memcpy(or, old + even, rest * 2);
			m2 = NAME(most)(feedback, UNIT, xr, or, f);
		}
		step s = steps(m > m2 ? m : m2, feedback, unit);
		scale[b] = s.size;
		if (feedback)
			newscale[b] = s.residual;
		if (!s.inv) { // not finite, or nothing
			finite &= s.size == 0;
			memset(q, 0, len);
			if (feedback)
				memset(neu, 0, len * 2);
			continue;
		}
		NAME(round)(feedback, even, q, x, old, f, neu, s);
		if (rest) {
			NAME(round)(feedback, UNIT, qr, xr, or, f, nr, s);
			memcpy(q + even, qr, rest);
			if (feedback)
				memcpy(neu + even, nr, rest * 2);
		}
	}
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

// RANKS is a constant where the loop over ranks shall be unrolled.
static inline __attribute__((always_inline)) void NAME(sums)(
	size_t n, size_t block, float *dst, const int8_t *q, const float *scale, size_t stride, const int ranks, const int own) {
	for (size_t from = 0, b = 0; from < n; from += block, b++) {
		size_t to = from + block < n ? from + block : n, i = from;
		for (; i + LANES <= to; i += LANES) {
			V a = set1(0), o = ldf(dst + i);
			for (int r = 0; r < ranks; r++) {
				V v = r == own ? o : vmul(ld8(q + r * stride + i), set1(((const float *)((const char *)scale + r * stride))[b]));
				a = r ? vadd(a, v) : v;
			}
			stf(dst + i, a);
		}
		for (; i < to; i++) {
			float a = 0;
			for (int r = 0; r < ranks; r++) {
				float v = r == own ? dst[i] : (float)q[r * stride + i] * ((const float *)((const char *)scale + r * stride))[b];
				a = r ? a + v : v;
			}
			dst[i] = a;
		}
	}
}

static void NAME(sum)(size_t n, size_t block, float *dst, const int8_t *q, const float *scale, size_t stride, int ranks, int own) {
	if (ranks == 2 && own == 0)
		NAME(sums)(n, block, dst, q, scale, stride, 2, 0);
	else if (ranks == 2 && own == 1)
		NAME(sums)(n, block, dst, q, scale, stride, 2, 1);
	else
		NAME(sums)(n, block, dst, q, scale, stride, ranks, own);
}

static void NAME(narrow)(int bf, size_t n, uint16_t *dst, const float *src, float by) {
	size_t i = 0;
	V s = set1(by);
	if (bf)
		for (; i + 2 * LANES <= n; i += 2 * LANES) {
			stb(dst + i, vmul(ldf(src + i), s), vmul(ldf(src + i + LANES), s));
		}
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
	I m = zero(), m1 = zero();
	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		V a = bf ? ldb(src + i) : ldh(src + i), b = bf ? ldb(src + i + LANES) : ldh(src + i + LANES);
		m = imax(m, a);
		m1 = imax(m1, b);
		stf(dst + i, vmul(a, s));
		stf(dst + i + LANES, vmul(b, s));
	}
	uint32_t top = hmax(m, m1);
	for (; i < n; i++) {
		float f = bf ? from_bf16(src[i]) : from_f16(src[i]);
		uint32_t v = bits(f) & 0x7fffffff;
		top = v > top ? v : top;
		dst[i] = f * by;
	}
	return top < 0x7f800000;
}

static const codec NAME(codec) = {NAME(encode), NAME(decode), NAME(sum), NAME(narrow), NAME(widen)};

#undef LOAD
#undef UNIT
#undef NV
#undef NAME
#undef V
#undef I
#undef LANES
#undef ldf
#undef stf
#undef vadd
#undef vsub
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
