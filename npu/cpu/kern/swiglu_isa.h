// SwiGLU for one instruction set.

// 1/(1 + e^-v), 0 where that is below the smallest number. A division would take longer than all the rest.
INLINE V ISA(sigmoid)(V v) {
#if VL == 16
	V z = (V)_mm512_min_ps((__m512)ISA(splat)(87), (__m512)-v), d = 1 + ISA(vexp)(z);
	V r = (V)_mm512_rcp14_ps((__m512)d);
	__mmask16 some = _mm512_cmp_ps_mask((__m512)v, (__m512)ISA(splat)(-87), _CMP_NLT_UQ); // NaN too
	return (V)_mm512_maskz_mul_ps(some, (__m512)r, (__m512)(2 - d * r)); // one step of Newton's doubles the 14 bits
#else
	return 1 / (1 + ISA(vexp)(-v));
#endif
}

#define E f32
#define EL float
#include "swiglu_type.h"
#undef E
#undef EL
#define E bf16
#define EL uint16_t
#include "swiglu_type.h"
#undef E
#undef EL

static int ISA(swiglu)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, c->dt == KERN_BF16 ? ISA(swiglu_range_bf16) : ISA(swiglu_range_f32), c);
	return 0;
}

static int ISA(swiglu_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, c->dt == KERN_BF16 ? ISA(swiglu_bwd_range_bf16) : ISA(swiglu_bwd_range_f32), c);
	return 0;
}
