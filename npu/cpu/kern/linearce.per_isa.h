// Steps of cross-entropy with its linear layer, for one instruction set: the two element types, and the code around them.
#undef LF
#define LF(p) (n == VL ? CAT(ld_, ISA(f32))(p) : CAT(ldn_, ISA(f32))(p, n))

// The largest lane of four vectors.
INLINE float ISA(vhigh)(const V *v) {
	float l[VL];
	CAT(st_, ISA(f32))(l, ISA(vmax)(ISA(vmax)(v[0], v[1]), ISA(vmax)(v[2], v[3])));
	for (int h = VL / 2; h > 0; h /= 2)
		for (int i = 0; i < h; i++) l[i] = l[i] > l[i + h] ? l[i] : l[i + h];
	return l[0];
}

static float ISA(lce_max)(const float *t, int64_t m) {
	V high[4];
	int64_t i = 0;
	enum { n = VL };
	for (int u = 0; u < 4; u++) high[u] = ISA(splat)(-INFINITY);
	for (; i + 4 * VL <= m; i += 4 * VL)
		UNROLL for (int u = 0; u < 4; u++) high[u] = ISA(vmax)(high[u], LF(t + i + u * VL));
	float best = ISA(vhigh)(high);
	for (; i < m; i++)
		if (t[i] > best) best = t[i];
	return best;
}

#define TYPED "linearce.per_type.h"
#include "types.h"

static int ISA(lce_tile)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_tile_rows), c);
	return 0;
}

static int ISA(lce_scale)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_scale_rows), c);
	return 0;
}

static int ISA(lce_dx)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_dx_rows), c);
	return 0;
}

static int ISA(lce_hits)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[1], c->n[0], PICK(lce_hits_columns), c);
	return 0;
}

static int ISA(lce_prob)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[1], PICK(lce_prob_rows), c);
	return 0;
}
