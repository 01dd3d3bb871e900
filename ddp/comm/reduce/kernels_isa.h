// Included once per instruction set with SUFFIX set and the target chosen by a pragma. Simple loops that the compiler vectorises; order of
// operations as in plain.go. -ffast-math must stay off: it would break the order and the NaN rules.

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define NAME(x) CAT(x, SUFFIX)

// Two sources that are also the destinations (two ranks), and the same with four: the cases in which one fused pass pays off.
#define FUSED(T, N)                                                                                                    \
	static void NAME(sum2_##N)(size_t n, T *restrict a, T *restrict b) {                                               \
		for (size_t i = 0; i < n; i++) {                                                                               \
			T v = a[i] + b[i];                                                                                         \
			a[i] = v;                                                                                                  \
			b[i] = v;                                                                                                  \
		}                                                                                                              \
	}                                                                                                                  \
	static void NAME(sum4_##N)(size_t n, T *restrict a, T *restrict b, T *restrict c, T *restrict d) {                 \
		for (size_t i = 0; i < n; i++) {                                                                               \
			T v = ((a[i] + b[i]) + c[i]) + d[i];                                                                       \
			a[i] = v;                                                                                                  \
			b[i] = v;                                                                                                  \
			c[i] = v;                                                                                                  \
			d[i] = v;                                                                                                  \
		}                                                                                                              \
	}

#define SIMPLE(T, N)                                                                                                   \
	static void NAME(sum_##N)(size_t n, T *restrict a, const T *restrict b) {                                          \
		for (size_t i = 0; i < n; i++)                                                                                 \
			a[i] = (T)(a[i] + b[i]);                                                                                   \
	}                                                                                                                  \
	static void NAME(max_##N)(size_t n, T *restrict a, const T *restrict b) {                                          \
		for (size_t i = 0; i < n; i++)                                                                                 \
			a[i] = (a[i] > b[i]) | (a[i] != a[i]) ? a[i] : b[i];                                                       \
	}                                                                                                                  \
	static void NAME(min_##N)(size_t n, T *restrict a, const T *restrict b) {                                          \
		for (size_t i = 0; i < n; i++)                                                                                 \
			a[i] = (a[i] < b[i]) | (a[i] != a[i]) ? a[i] : b[i];                                                       \
	}

FUSED(float, f32)
FUSED(double, f64)
SIMPLE(float, f32)
SIMPLE(double, f64)
SIMPLE(int32_t, i32)
SIMPLE(int64_t, i64)
SIMPLE(uint8_t, u8)
SIMPLE(int8_t, i8)

static void NAME(load_bf16)(size_t n, float *restrict a, const uint16_t *restrict x) {
	for (size_t i = 0; i < n; i++) {
		uint32_t v = (uint32_t)x[i] << 16;
		memcpy(&a[i], &v, 4);
	}
}

static void NAME(store_bf16)(size_t n, uint16_t *restrict x, const float *restrict a) {
	for (size_t i = 0; i < n; i++) {
		uint32_t b;
		memcpy(&b, &a[i], 4);
		uint32_t nan = (b >> 16) | 0x40, r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
		x[i] = (uint16_t)((b & 0x7fffffff) > 0x7f800000 ? nan : r);
	}
}

static void NAME(load_f16)(size_t n, float *restrict a, const uint16_t *restrict x) {
	size_t i = 0;
#ifdef F16_VECTOR
	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(a + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
	for (; i < n; i++)
		a[i] = from_f16(x[i]);
}

static void NAME(store_f16)(size_t n, uint16_t *restrict x, const float *restrict a) {
	size_t i = 0;
#ifdef F16_VECTOR
	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(x + i), _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
#endif
	for (; i < n; i++)
		x[i] = to_f16(a[i]);
}

#define OPS(T, N)                                                                                                      \
	{ (two_fn)NAME(sum_##N), (two_fn)NAME(max_##N), (two_fn)NAME(min_##N) }

static const table NAME(table) = {
	.isa = ISA,
	.two = {[F32] = OPS(float, f32), [F64] = OPS(double, f64), [I32] = OPS(int32_t, i32),
		[I64] = OPS(int64_t, i64), [U8] = OPS(uint8_t, u8), [I8] = OPS(int8_t, i8)},
	.load = {[BF16] = (two_fn)NAME(load_bf16), [F16] = (two_fn)NAME(load_f16)},
	.store = {[BF16] = (two_fn)NAME(store_bf16), [F16] = (two_fn)NAME(store_f16)},
	.sum2 = {[F32] = (sum2_fn)NAME(sum2_f32), [F64] = (sum2_fn)NAME(sum2_f64)},
	.sum4 = {[F32] = (sum4_fn)NAME(sum4_f32), [F64] = (sum4_fn)NAME(sum4_f64)},
};

#undef FUSED
#undef SIMPLE
#undef OPS
#undef NAME
#undef CAT
#undef CAT_
#undef SUFFIX
#undef ISA
