// Vectors of VL floats for one instruction set, with loads and stores of float32 and bfloat16. Included by isa.h, once per instruction set.

#undef V
#undef U
#undef I
typedef float ISA(V) __attribute__((vector_size(4 * VL)));
typedef float ISA(VU) __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef uint32_t ISA(U) __attribute__((vector_size(4 * VL)));
typedef int32_t ISA(I) __attribute__((vector_size(4 * VL)));
typedef uint16_t ISA(H) __attribute__((vector_size(2 * VL)));
typedef uint16_t ISA(HU) __attribute__((vector_size(2 * VL), aligned(2), may_alias));
#define V ISA(V)
#define U ISA(U)
#define I ISA(I)

INLINE V ISA(splat)(float x) { return x - (V){}; }
INLINE V ISA(select)(I mask, V a, V b) { return (V)((mask & (I)a) | (~mask & (I)b)); }
INLINE V ISA(vrelu)(V v) { return ISA(select)(v < (V){}, (V){}, v); } // keeps NaN

INLINE float ISA(vsum)(V v) {
	float s[VL];
	memcpy(s, &v, sizeof s);
	for (int h = VL / 2; h > 0; h /= 2)
		for (int i = 0; i < h; i++) s[i] += s[i + h];
	return s[0];
}

INLINE V ISA(ld_f32)(const float *p) { return *(const ISA(VU) *)p; }
INLINE void ISA(st_f32)(float *p, V v) { *(ISA(VU) *)p = v; }
INLINE float ISA(ld1_f32)(const float *p) { return *p; }
INLINE void ISA(st1_f32)(float *p, float v) { *p = v; }

INLINE V ISA(ld_bf16)(const uint16_t *p) {
	ISA(H) h = *(const ISA(HU) *)p;
	return (V)(__builtin_convertvector(h, U) << 16);
}

// Rounds to nearest even; a NaN keeps its upper bits and becomes quiet. The instruction flushes denormals, the portable code does not.
INLINE void ISA(st_bf16)(uint16_t *p, V v) {
#if VL == 16
	*(ISA(HU) *)p = (ISA(H))_mm512_cvtneps_pbh((__m512)v);
#else
	U u = (U)v, r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
	U nan = (U)(v != v);
	r = (nan & ((u >> 16) | 0x40)) | (~nan & r);
	*(ISA(HU) *)p = __builtin_convertvector(r, ISA(H));
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

// Lanes n… become 0.
INLINE V ISA(keep)(V v, int n) {
	if (n == VL) return v;
	I lane;
	for (int i = 0; i < VL; i++) lane[i] = i;
	return (V)((lane < n) & (I)v);
}
