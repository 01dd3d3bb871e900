// What bounds kernels, for one instruction set: loops that only read, copy, add or multiply. Every range counts lines of 64 bytes.

// PER vectors are a line.
enum { ISA(PER) = 64 / (4 * VL) };

// The lines lo…hi-1 are read as S streams side by side, as hardware prefetchers follow several and each stops at the end of a page, L lines of each
// at a time. AHEAD is how many bytes ahead of each stream software prefetches; 0: it does not.
#define READ(name, S, L, AHEAD) \
	static void ISA(name)(void *ctx, int64_t lo, int64_t hi) { \
		const limit_job *j = ctx; \
		int64_t len = (hi - lo) / S / L * L; \
		I s[8] = {{0}}; \
		for (int64_t r = 0; r < j->rounds; r++) { \
			const char *p = j->a + lo * 64; \
			for (int64_t i = 0; i < len; i += L) { \
				UNROLL_ALL for (int k = 0; k < S * L; k++) { \
					const char *q = p + (k / L * len + i + k % L) * 64; \
					if (AHEAD) __builtin_prefetch(q + AHEAD); \
					UNROLL for (int v = 0; v < ISA(PER); v++) s[(k + v) % 8] ^= (I)ISA(ld_f32)((const float *)q + v * VL); \
				} \
			} \
			for (int64_t i = lo + S * len; i < hi; i++) \
				UNROLL for (int v = 0; v < ISA(PER); v++) s[v] ^= (I)ISA(ld_f32)((const float *)(j->a + i * 64) + v * VL); \
			__asm__ volatile("" ::: "memory"); \
		} \
		I all = s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ s[5] ^ s[6] ^ s[7]; \
		limit_keep(&all); \
	}
READ(limit_read1, 1, 8, 0)
READ(limit_read1_ahead, 1, 8, 1024)
READ(limit_read2, 2, 4, 0)
READ(limit_read4, 4, 2, 0)
READ(limit_read4_ahead, 4, 2, 512)
READ(limit_read8_ahead, 8, 1, 256)
#undef READ

#define WALK(BODY) \
	const limit_job *j = ctx; \
	for (int64_t r = 0; r < j->rounds; r++) { \
		float *a = (float *)(j->a + lo * 64); \
		const float *b = (const float *)(j->b + lo * 64); \
		for (int64_t i = 0; i < (hi - lo) * 16; i += 16) { \
			UNROLL for (int v = 0; v < 16; v += VL) BODY; \
		} \
		__asm__ volatile("" ::: "memory"); \
	}
static void ISA(limit_copy)(void *ctx, int64_t lo, int64_t hi) { WALK(ISA(st_f32)(a + i + v, ISA(ld_f32)(b + i + v))) }
static void ISA(limit_add)(void *ctx, int64_t lo, int64_t hi) { WALK(ISA(st_f32)(a + i + v, ISA(ld_f32)(a + i + v) + ISA(ld_f32)(b + i + v))) }
// A store that does not read the line first, where the instruction set has one.
INLINE void ISA(limit_store)(float *p, V x) {
#if VL == 16
	_mm512_stream_ps(p, (__m512)x);
#elif VL == 8
	_mm256_stream_ps(p, (__m256)x);
#elif defined(__SSE2__)
	_mm_stream_ps(p, (__m128)x);
#else
	ISA(st_f32)(p, x);
#endif
}
static void ISA(limit_past)(void *ctx, int64_t lo, int64_t hi) {
	WALK({
		V x = ISA(ld_f32)(b + i + v);
		ISA(limit_store)(a + i + v, x);
	})
#ifdef __SSE2__
	_mm_sfence();
#endif
}
#undef WALK

// Multiply-adds in registers: LIMIT_CHAINS of them at a time, as an instruction takes several cycles.
static void ISA(limit_fma)(void *ctx, int64_t lo, int64_t hi) {
	(void)lo, (void)hi;
	const limit_job *j = ctx;
	V s[LIMIT_CHAINS], x = ISA(splat)(j->x), y = ISA(splat)(j->y);
	UNROLL_ALL for (int k = 0; k < LIMIT_CHAINS; k++) s[k] = ISA(splat)((float)k);
	for (int64_t r = 0; r < j->rounds; r++) {
		UNROLL_ALL for (int k = 0; k < LIMIT_CHAINS; k++) s[k] = s[k] * x + y;
	}
	V all = s[0];
	UNROLL_ALL for (int k = 1; k < LIMIT_CHAINS; k++) all += s[k];
	limit_keep(&all);
}

#if VL == 16
static void ISA(limit_dot)(void *ctx, int64_t lo, int64_t hi) {
	(void)lo, (void)hi;
	const limit_job *j = ctx;
	V s[LIMIT_CHAINS];
	__m512bh x = (__m512bh)_mm512_set1_epi32(0x00010001), y = (__m512bh)_mm512_set1_epi32(0x3f803f80);
	UNROLL_ALL for (int k = 0; k < LIMIT_CHAINS; k++) s[k] = ISA(splat)((float)k);
	for (int64_t r = 0; r < j->rounds; r++) {
		UNROLL_ALL for (int k = 0; k < LIMIT_CHAINS; k++) s[k] = (V)_mm512_dpbf16_ps((__m512)s[k], x, y);
	}
	V all = s[0];
	UNROLL_ALL for (int k = 1; k < LIMIT_CHAINS; k++) all += s[k];
	limit_keep(&all);
}
#define LIMIT_DOT_LOOP {LIMIT_DOT, ISA(limit_dot), 4 * VL * LIMIT_CHAINS},
#else
#define LIMIT_DOT_LOOP
#endif

static const limit_loop ISA(limit_loops)[] = {
	{LIMIT_READ, ISA(limit_read1)}, {LIMIT_READ, ISA(limit_read1_ahead)}, {LIMIT_READ, ISA(limit_read2)}, {LIMIT_READ, ISA(limit_read4)},
	{LIMIT_READ, ISA(limit_read4_ahead)}, {LIMIT_READ, ISA(limit_read8_ahead)}, {LIMIT_COPY, ISA(limit_copy)}, {LIMIT_COPY, ISA(limit_past)},
	{LIMIT_ADD, ISA(limit_add)}, {LIMIT_FMA, ISA(limit_fma), 2 * VL * LIMIT_CHAINS}, LIMIT_DOT_LOOP {0, 0, 0},
};
#undef LIMIT_DOT_LOOP
