// Weights from float32 to bf16 in blocks, for one instruction set. See pack.h.

// The upper 16 bits of float32, rounded as st_bf16 rounds, in the lower ones of each lane.
INLINE U ISA(bf16_bits)(V v) {
#if VL == 16
	return (U)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)v));
#else
	U u = (U)v, r = (u + 0x7fff + ((u >> 16) & 1)) >> 16, nan = (U)(v != v);
	return (nan & ((u >> 16) | 0x40)) | (~nan & r);
#endif
}

// Columns are adjacent in x: two rows become one row of pairs.
INLINE void ISA(pack_rows)(const float *x, int64_t pair, uint16_t *y) {
	*(ISA(VU) *)y = (V)(ISA(bf16_bits)(ISA(ld_f32)(x)) | ISA(bf16_bits)(ISA(ld_f32)(x + pair)) << 16);
}

// Pairs are adjacent in x: VL columns with VL pairs each are transposed.
INLINE void ISA(pack_turned)(const pack *g, const float *x, uint16_t *y, int64_t p) {
	uint16_t t[VL][2 * VL] __attribute__((aligned(64)));
	for (int i = 0; i < VL; i++) {
		ISA(st_bf16)(t[i], ISA(ld_f32)(x + i * g->column));
		ISA(st_bf16)(t[i] + VL, ISA(ld_f32)(x + i * g->column + VL));
	}
	V b[VL];
	for (int i = 0; i < VL; i++) b[i] = *(const ISA(VU) *)t[i];
	ISA(vturn)(b);
	for (int i = 0; i < VL; i++) *(ISA(VU) *)(y + pack_pair(g, p + i)) = b[i];
}

static void ISA(pack_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	const pack *g = (const pack *)c->v;
	int64_t step = g->pair == 1 ? VL : 1, chunks = g->pairs / step;
	for (int64_t k = lo; k < hi; k++) {
		int64_t p = k % chunks * step, q = k / chunks;
		const float *x = (const float *)c->p[0] + p * 2 * g->pair;
		uint16_t *y = c->p[1];
		for (int d = 0; d < PACK_OUTER; d++) {
			int64_t i = q % g->outer[d].n;
			q /= g->outer[d].n, x += i * g->outer[d].x, y += i * g->outer[d].y;
		}
		for (int64_t j = 0; j < g->padded; j += VL) {
			uint16_t *to = y + j / g->block * g->next + j % g->block * 2;
			if (j >= g->columns)
				for (int64_t i = 0; i < step; i++) *(ISA(VU) *)(to + pack_pair(g, p + i)) = (V){0};
			else if (g->pair == 1)
				ISA(pack_turned)(g, x + j * g->column, to, p);
			else
				ISA(pack_rows)(x + j, g->pair, to + pack_pair(g, p));
		}
	}
}

static int ISA(pack)(kern_cmd *c, int nthreads) {
	const pack *g = (const pack *)c->v;
	int64_t step = g->pair == 1 ? VL : 1, units = g->pairs / step;
	for (int d = 0; d < PACK_OUTER; d++) units *= g->outer[d].n;
	kern_for(nthreads, units, step * 2 * g->columns, ISA(pack_range), c);
	return 0;
}
