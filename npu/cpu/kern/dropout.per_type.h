// Dropout for one instruction set and element type.
#include "type.h"

static void FN(dropout_range)(void *ctx, int64_t lo, int64_t hi) {
	const kern_cmd *c = ctx;
	int64_t at = lo * 1024, m = (hi * 1024 < c->n[0] ? hi * 1024 : c->n[0]) - at, row = c->n[2];
	const EL *x = (const EL *)c->p[0] + at;
	EL *y = (EL *)c->p[2] + at;
	uint64_t seed, least = (uint64_t)ceil(c->f[0] * 16777216); // keep iff (z>>40)*2^-24 >= p
	memcpy(&seed, c->p[1], 8);
	seed ^= ((uint64_t)c->n[1] + 1) * UINT64_C(0xD1342543DE82EF95);
	float scale = (float)(1 / (1 - c->f[0]));
	if (!row) {
		for (int64_t i = 0; i < m; i += VL) {
			int n = m - i < VL ? (int)(m - i) : VL;
			V v = LD(x + i) * scale;
			ST(y + i, (V)(ISA(kept)(seed, (uint64_t)(at + i), least) & (I)v));
		}
		return;
	}
	for (int64_t i = 0; i < m;) { // what of a row lies within the range; a dropped one is not read
		int64_t r = (at + i) / row, end = (r + 1) * row - at;
		if (end > m) end = m;
		if (ISA(kept)(seed, (uint64_t)r, least)[0]) {
			for (; i < end; i += VL) {
				int n = end - i < VL ? (int)(end - i) : VL;
				ST(y + i, LD(x + i) * scale);
			}
		} else {
			memset(y + i, 0, (size_t)(end - i) * sizeof(EL));
		}
		i = end;
	}
}
