// SwiGLU for one instruction set.

// 1/(1 + e^-v), flushed to 0 below the smallest number. This is all of the work here, hence faster code than vexp and a division: 2^f on |f| ≤ ½ is a
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

#define TYPED "swiglu.per_type.h"
#include "types.h"

static int ISA(swiglu)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(swiglu_range), c);
	return 0;
}

static int ISA(swiglu_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(swiglu_bwd_range), c);
	return 0;
}
