// The inverse DCT of libjpeg ("islow"): two passes of a one-dimensional transform in 13-bit fixed point (Loeffler, Ligtenberg, Moschytz, ICASSP 1989).

#undef V
#define V ISA(bl_v)
typedef int32_t V __attribute__((vector_size(32))); // a row of a block
typedef int16_t ISA(bl_h) __attribute__((vector_size(16)));

#define F_0_298 2446
#define F_0_390 3196
#define F_0_541 4433
#define F_0_765 6270
#define F_0_899 7373
#define F_1_175 9633
#define F_1_501 12299
#define F_1_847 15137
#define F_1_961 16069
#define F_2_053 16819
#define F_2_562 20995
#define F_3_072 25172

// One pass over the rows of v, all columns at a time; results are divided by 2^bits, rounded.
INLINE void ISA(pass)(V *v, int bits) {
	V z1 = (v[2] + v[6]) * F_0_541;
	V t2 = z1 - v[6] * F_1_847, t3 = z1 + v[2] * F_0_765;
	V t0 = (v[0] + v[4]) << 13, t1 = (v[0] - v[4]) << 13;
	V a0 = t0 + t3, a3 = t0 - t3, a1 = t1 + t2, a2 = t1 - t2;

	V y1 = v[7] + v[1], y2 = v[5] + v[3], y3 = v[7] + v[3], y4 = v[5] + v[1];
	V y5 = (y3 + y4) * F_1_175;
	V o0 = v[7] * F_0_298, o1 = v[5] * F_2_053, o2 = v[3] * F_3_072, o3 = v[1] * F_1_501;
	y1 *= -F_0_899;
	y2 *= -F_2_562;
	y3 = y3 * -F_1_961 + y5;
	y4 = y4 * -F_0_390 + y5;
	o0 += y1 + y3;
	o1 += y2 + y4;
	o2 += y2 + y3;
	o3 += y1 + y4;

	V half = (V){} + (1 << (bits - 1));
	a0 += half, a1 += half, a2 += half, a3 += half;
	v[0] = (a0 + o3) >> bits;
	v[7] = (a0 - o3) >> bits;
	v[1] = (a1 + o2) >> bits;
	v[6] = (a1 - o2) >> bits;
	v[2] = (a2 + o1) >> bits;
	v[5] = (a2 - o1) >> bits;
	v[3] = (a3 + o0) >> bits;
	v[4] = (a3 - o0) >> bits;
}

INLINE void ISA(transpose)(V *v) {
#ifdef AVX2
	__m256i a[8], b[8];
	for (int i = 0; i < 4; i++) {
		a[2 * i] = _mm256_unpacklo_epi32((__m256i)v[2 * i], (__m256i)v[2 * i + 1]);
		a[2 * i + 1] = _mm256_unpackhi_epi32((__m256i)v[2 * i], (__m256i)v[2 * i + 1]);
	}
	for (int i = 0; i < 8; i += 4) {
		b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
		b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
		b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
		b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
	}
	for (int i = 0; i < 4; i++) {
		v[i] = (V)_mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
		v[i + 4] = (V)_mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
	}
#else
	int32_t m[8][8];
	memcpy(m, v, sizeof m);
	for (int i = 0; i < 8; i++)
		v[i] = (V){m[0][i], m[1][i], m[2][i], m[3][i], m[4][i], m[5][i], m[6][i], m[7][i]};
#endif
}

// Samples of a block whose coefficients but the first are 0.
INLINE void ISA(flat)(int dc, uint8_t *dst, ptrdiff_t stride) {
	int v = (((int16_t)dc + 4) >> 3) + 128;
	v = v < 0 ? 0 : v > 255 ? 255 : v;
	uint64_t row = (uint64_t)v * 0x0101010101010101u;
	for (int i = 0; i < 8; i++) memcpy(dst + i * stride, &row, 8);
}

// Coefficients in natural order, times quant, become samples.
INLINE void ISA(idct)(const int16_t *coef, const uint16_t *quant, uint8_t *dst, ptrdiff_t stride) {
	V v[8];
	for (int i = 0; i < 8; i++) {
#ifdef AVX2
		__m128i p = _mm_mullo_epi16(_mm_loadu_si128((const __m128i *)(coef + 8 * i)), _mm_loadu_si128((const __m128i *)(quant + 8 * i)));
		v[i] = (V)_mm256_cvtepi16_epi32(p);
#else
		for (int k = 0; k < 8; k++) v[i][k] = (int16_t)(coef[8 * i + k] * quant[8 * i + k]);
#endif
	}
	ISA(pass)(v, 11);
	ISA(transpose)(v);
	ISA(pass)(v, 18);
	ISA(transpose)(v);
#ifdef AVX2
	__m128i centre = _mm_set1_epi8((char)128);
	for (int i = 0; i < 8; i += 2) {
		__m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)v[i], (__m256i)v[i + 1]), 0xd8);
		__m128i b = _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
		b = _mm_xor_si128(b, centre);
		_mm_storel_epi64((__m128i *)(dst + i * stride), b);
		_mm_storel_epi64((__m128i *)(dst + (i + 1) * stride), _mm_unpackhi_epi64(b, b));
	}
#else
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 8; k++) {
			int x = v[i][k] + 128;
			dst[i * stride + k] = x < 0 ? 0 : x > 255 ? 255 : x;
		}
#endif
}
