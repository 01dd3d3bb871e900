// Vectors of VL floats for one instruction set, with loads and stores of float32 and bfloat16. Included by isa.h, once per instruction set.

#undef V
#undef U
#undef I
typedef float ISA(V) __attribute__((vector_size(4 * VL)));
typedef float ISA(VU) __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef uint32_t ISA(U) __attribute__((vector_size(4 * VL)));
typedef uint32_t ISA(UU) __attribute__((vector_size(4 * VL), aligned(2), may_alias));
typedef int32_t ISA(I) __attribute__((vector_size(4 * VL)));
typedef uint16_t ISA(H) __attribute__((vector_size(2 * VL)));
typedef uint16_t ISA(HU) __attribute__((vector_size(2 * VL), aligned(2), may_alias));
#define V ISA(V)
#define U ISA(U)
#define I ISA(I)

INLINE V ISA(splat)(float x) { return x - (V){0}; }
INLINE V ISA(select)(I mask, V a, V b) { return (V)((mask & (I)a) | (~mask & (I)b)); }
// Keeps NaN, and the sign of zero: the instructions give their second operand then.
INLINE V ISA(vrelu)(V v) {
#if VL == 16
	return (V)_mm512_max_ps(_mm512_setzero_ps(), (__m512)v);
#elif VL == 8
	return (V)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
#else
	return ISA(select)(v < (V){}, (V){}, v);
#endif
}

// The sum of all lanes: the upper half is added to the lower one until one is left.
INLINE float ISA(vsum)(V v) {
#if VL >= 8
#if VL == 16
	__m256 a = _mm256_add_ps(_mm512_castps512_ps256((__m512)v), _mm512_extractf32x8_ps((__m512)v, 1));
#else
	__m256 a = (__m256)v;
#endif
	__m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	b = _mm_add_ps(b, _mm_movehl_ps(b, b));
	return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
#else
	float s[VL];
	memcpy(s, &v, sizeof s);
	for (int h = VL / 2; h > 0; h /= 2)
		for (int i = 0; i < h; i++) s[i] += s[i + h];
	return s[0];
#endif
}

INLINE V ISA(ld_f32)(const float *p) { return *(const ISA(VU) *)p; }
INLINE void ISA(st_f32)(float *p, V v) { *(ISA(VU) *)p = v; }
INLINE float ISA(ld1_f32)(const float *p) { return *p; }
INLINE void ISA(st1_f32)(float *p, float v) { *p = v; }

INLINE V ISA(ld_bf16)(const uint16_t *p) {
	// gcc 12 emits five instructions for the conversion, which needs one.
#if VL == 16
	return (V)((U)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)) << 16);
#elif VL == 8
	return (V)((U)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)) << 16);
#else
	ISA(H) h = *(const ISA(HU) *)p;
	return (V)(__builtin_convertvector(h, U) << 16);
#endif
}

// Rounds to nearest even; a NaN keeps its upper bits and becomes quiet. The instruction flushes denormals, the portable code does not.
INLINE void ISA(st_bf16)(uint16_t *p, V v) {
#if VL == 16
	*(ISA(HU) *)p = (ISA(H))_mm512_cvtneps_pbh((__m512)v);
#else
	U u = (U)v, r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
	U nan = (U)(v != v);
	r = (nan & ((u >> 16) | 0x40)) | (~nan & r);
#if VL == 8
	__m256i w = _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)r, (__m256i)r), 0x08);
	_mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(w));
#else
	*(ISA(HU) *)p = __builtin_convertvector(r, ISA(H));
#endif
#endif
}

INLINE float ISA(ld1_bf16)(const uint16_t *p) {
	uint32_t u = (uint32_t)*p << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}

INLINE void ISA(st1_bf16)(uint16_t *p, float v) {
	uint32_t u;
	memcpy(&u, &v, 4);
	*p = v != v ? (u >> 16) | 0x40 : (u + 0x7fff + ((u >> 16) & 1)) >> 16;
}

// The first n < VL elements of a vector, and zeros.
#if VL == 16
INLINE V ISA(ldn_f32)(const float *p, int n) { return (V)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
INLINE void ISA(stn_f32)(float *p, V v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v); }
INLINE V ISA(ldn_bf16)(const uint16_t *p, int n) {
	return (V)((U)_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p)) << 16);
}
INLINE void ISA(stn_bf16)(uint16_t *p, V v, int n) {
	_mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), (__m256i)_mm512_cvtneps_pbh((__m512)v));
}
#else
NOINLINE V ISA(ldn_f32)(const float *p, int n) {
	float t[VL] = {0};
	memcpy(t, p, (size_t)n * 4);
	return ISA(ld_f32)(t);
}
NOINLINE void ISA(stn_f32)(float *p, V v, int n) {
	float t[VL];
	ISA(st_f32)(t, v);
	memcpy(p, t, (size_t)n * 4);
}
NOINLINE V ISA(ldn_bf16)(const uint16_t *p, int n) {
	uint16_t t[VL] = {0};
	memcpy(t, p, (size_t)n * 2);
	return ISA(ld_bf16)(t);
}
NOINLINE void ISA(stn_bf16)(uint16_t *p, V v, int n) {
	uint16_t t[VL];
	ISA(st_bf16)(t, v);
	memcpy(p, t, (size_t)n * 2);
}
#endif

// b if either is NaN, like the instructions
INLINE V ISA(vmax)(V a, V b) {
#if VL == 16
	return (V)_mm512_max_ps((__m512)a, (__m512)b);
#elif VL == 8
	return (V)_mm256_max_ps((__m256)a, (__m256)b);
#else
	return ISA(select)(a > b, a, b);
#endif
}
INLINE V ISA(vabs)(V v) { return (V)((I)v & 0x7fffffff); }
INLINE V ISA(vsqrt)(V v) {
#if VL == 16
	return (V)_mm512_sqrt_ps((__m512)v);
#elif VL == 8
	return (V)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE2__)
	return (V)_mm_sqrt_ps((__m128)v);
#else
	for (int i = 0; i < VL; i++) v[i] = sqrtf(v[i]);
	return v;
#endif
}

// e^v to about 1 ulp: v = k ln 2 + r, a polynomial for e^r (Taylor's, |r| ≤ 0.35, next term 2e-8 relative), and k goes into the exponent in two
// halves, so that results reach down to denormals. Overflow gives infinity; NaN is kept.
INLINE V ISA(vexp)(V v) {
#if VL == 16 // min and max return their second operand if either is NaN
	V x = (V)_mm512_max_ps((__m512)ISA(splat)(-104), _mm512_min_ps((__m512)ISA(splat)(89), (__m512)v));
	V k = (V)_mm512_roundscale_ps((__m512)(x * 1.44269504f), 0);
#else
	V x = ISA(select)(v > 89, ISA(splat)(89), v);
	x = ISA(select)(x < -104, ISA(splat)(-104), x);
	V k = (x * 1.44269504f + 12582912.0f) - 12582912.0f; // round to integer
#endif
	V r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
	V p = ISA(splat)(1.0f / 5040);
	p = p * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r + 1;
	p = p * r + 1;
#if VL == 16
	return (V)_mm512_scalef_ps((__m512)p, (__m512)k);
#else
	I e = __builtin_convertvector(k, I), h = e >> 1;
	p = p * (V)((h + 127) << 23) * (V)((e - h + 127) << 23);
	return ISA(select)(v != v, v, p);
#endif
}

// tanh from e^2x, and near 0, where that cancels, from its series.
INLINE V ISA(vtanh)(V v) {
	V a = ISA(vabs)(v), s = v * v;
	V big = 1 - 2 / (ISA(vexp)(a + a) + 1);
	V small = a * (1 + s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835)))));
	V t = ISA(select)(a < 0.3f, small, big);
	return (V)((I)t | ((I)v & (I)ISA(splat)(-0.0f)));
}

// 1/(1 + e^-v), flushed to 0 below the smallest number. It is most of the work of its users, hence faster code than vexp and a division: 2^f on |f| ≤ ½ is a
// fitted polynomial (2e-7 relative), and the reciprocal starts from the processor's 14 bits.
INLINE V ISA(sigmoid)(V v) {
#if VL == 16 // min and max return their second operand if either is NaN
	V z = (V)_mm512_max_ps((__m512)ISA(splat)(-87), _mm512_min_ps((__m512)ISA(splat)(87), (__m512)v));
	V k = (V)_mm512_roundscale_ps((__m512)(z * -1.44269504f), 0);
	V f = (z * -1.44269504f - k) - z * 1.925963e-8f; // log2 e to 48 bits; the first product is not rounded
	V p = ISA(splat)(0.0013276472f);
	p = p * f + 0.009675541f;
	p = p * f + 0.05550713f;
	p = p * f + 0.2402212f;
	p = p * f + 0.69314694f;
	p = p * f + 1;
	V d = 1 + (V)_mm512_scalef_ps((__m512)p, (__m512)k), r = (V)_mm512_rcp14_ps((__m512)d);
	__mmask16 some = _mm512_cmp_ps_mask((__m512)v, (__m512)ISA(splat)(-87), _CMP_NLT_UQ); // NaN too
	return (V)_mm512_maskz_mul_ps(some, (__m512)r, (__m512)(2 - d * r)); // one Newton step doubles the bits
#else
	return 1 / (1 + ISA(vexp)(-v));
#endif
}

// v as it would be after a store and a load.
INLINE V ISA(round_f32)(V v) { return v; }
INLINE V ISA(round_bf16)(V v) {
#if VL == 16
	return (V)((U)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)v)) << 16);
#else
	U u = (U)v, r = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000;
	U nan = (U)(v != v);
	return (V)((nan & (u | 0x400000)) | (~nan & r));
#endif
}

// Sets lanes n… to 0.
INLINE V ISA(keep)(V v, int n) {
	if (n == VL) return v;
	I lane;
	for (int i = 0; i < VL; i++) lane[i] = i;
	return (V)((lane < n) & (I)v);
}

// Note [pairs]: two vectors at once, in the order that costs least. Of bfloat16 that is the elements of even number and those of odd number, each the upper
// half of a word after one shift or mask, where vectors in order take two instructions for each to widen. Sums of channels do not mind as long as the vectors
// that go with them have that order too: pair puts them into it, and unpair back.
INLINE void ISA(ld2_f32)(const float *p, V v[2]) { v[0] = ISA(ld_f32)(p), v[1] = ISA(ld_f32)(p + VL); }
INLINE void ISA(ld2_bf16)(const uint16_t *p, V v[2]) {
	U t = *(const ISA(UU) *)p;
	v[0] = (V)(t << 16), v[1] = (V)(t & 0xffff0000);
}
INLINE V ISA(pack2_bf16)(const V v[2]) {
#if VL == 16
	static const uint16_t order[32] __attribute__((aligned(64))) = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
	                                                                8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
	return (V)_mm512_permutexvar_epi16(_mm512_load_si512(order), (__m512i)_mm512_cvtne2ps_pbh((__m512)v[1], (__m512)v[0]));
#else
	return (V)((U)ISA(round_bf16)(v[0]) >> 16 | (U)ISA(round_bf16)(v[1]));
#endif
}
INLINE void ISA(st2_f32)(float *p, const V v[2]) { ISA(st_f32)(p, v[0]), ISA(st_f32)(p + VL, v[1]); }
INLINE void ISA(st2_bf16)(uint16_t *p, const V v[2]) { ISA(st_f32)((float *)p, ISA(pack2_bf16)(v)); }

// Stores past the caches, of whole vectors at their alignment. Before another thread reads them, past_end.
INLINE void ISA(past)(void *p, V v) {
#if VL == 16
	_mm512_stream_ps(p, (__m512)v);
#elif VL == 8
	_mm256_stream_ps(p, (__m256)v);
#else
	*(V *)p = v;
#endif
}
INLINE void ISA(past2_f32)(float *p, const V v[2]) { ISA(past)(p, v[0]), ISA(past)(p + VL, v[1]); }
INLINE void ISA(past2_bf16)(uint16_t *p, const V v[2]) { ISA(past)(p, ISA(pack2_bf16)(v)); }
INLINE void ISA(past_end)(void) {
#if VL > 4
	_mm_sfence();
#endif
}

#undef SHUFFLE
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (I){__VA_ARGS__})
#endif

#if VL == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif VL == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER 4, 12, 5, 13, 6, 14, 7, 15
#else
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define LOWER 0, 4, 1, 5
#define UPPER 2, 6, 3, 7
#endif
INLINE void ISA(pair_f32)(V v[2]) { (void)v; }
INLINE void ISA(unpair_f32)(V v[2]) { (void)v; }
INLINE void ISA(pair_bf16)(V v[2]) {
	V a = v[0], b = v[1];
	v[0] = SHUFFLE(a, b, EVEN), v[1] = SHUFFLE(a, b, ODD);
}
INLINE void ISA(unpair_bf16)(V v[2]) {
	V a = v[0], b = v[1];
	v[0] = SHUFFLE(a, b, LOWER), v[1] = SHUFFLE(a, b, UPPER);
}

// Transposes VL vectors: log2(VL) times the first half is interleaved with the second.
INLINE void ISA(vturn)(V b[VL]) {
	UNROLL for (int s = 1; s < VL; s *= 2) {
		V t[VL];
		_Pragma("GCC unroll 16") for (int i = 0; i < VL / 2; i++) {
			V x = b[i], y = b[i + VL / 2];
			t[2 * i] = SHUFFLE(x, y, LOWER), t[2 * i + 1] = SHUFFLE(x, y, UPPER);
		}
		_Pragma("GCC unroll 16") for (int i = 0; i < VL; i++) b[i] = t[i];
	}
}
#undef EVEN
#undef ODD
#undef LOWER
#undef UPPER
