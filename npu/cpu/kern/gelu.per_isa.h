// GELU for one instruction set.

// The value and the slope of x·Φ(x). With a = |x| the tail of the normal distribution is Φ(-a) = e^(-a²/2)·p(t), t = 1/(1 + 0.23·a): a form of Abramowitz
// and Stegun 7.1.26 with a polynomial of degree 8, fitted to 5e-8 relative on a ≤ 14. The density is of the same exponential.
INLINE void ISA(gelu_exact)(V x, V *y, V *slope) {
	V a = ISA(vabs)(x), e = ISA(vexp)(x * x * -0.5f), d = 1 + a * 0.23f;
#if VL == 16
	V t = (V)_mm512_rcp14_ps((__m512)d);
	t = t * (2 - d * t); // one Newton step doubles the bits
	t = (V)_mm512_mask_mov_ps((__m512)t, _mm512_cmp_ps_mask((__m512)d, (__m512)ISA(splat)(1e30f), _CMP_GT_OQ), _mm512_setzero_ps()); // not 0·infinity
#else
	V t = 1 / d;
#endif
	V p = ISA(splat)(-0.07846816986742634f);
	p = p * t + 0.290417557557874f;
	p = p * t - 0.27813395659736206f;
	p = p * t + 0.30148068996327987f;
	p = p * t - 0.03292558465631745f;
	p = p * t + 0.11951632920784162f;
	p = p * t + 0.0857623402829287f;
	p = p * t + 0.09237853750913064f;
	p = p * t - 2.7767210918140883e-5f;
	V tail = e * p, phi = ISA(select)(x < (V){0}, tail, 1 - tail);
	*y = x * phi;
	*slope = phi + x * (e * 0.3989422804f);
}

// The form with tanh: (1 + tanh u)/2 is the sigmoid of 2u, u = √(2/π)·(x + 0.044715·x³). Beyond ±20 it is 1 and 0, and the slope too.
INLINE void ISA(gelu_tanh)(V x, V *y, V *slope) {
	V c = ISA(select)(x > 20, ISA(splat)(20), ISA(select)(x < -20, ISA(splat)(-20), x)), s = c * c;
	V p = ISA(sigmoid)(c * (1.5957691216f + 0.0713548163f * s));
	*y = x * p;
	*slope = p + c * p * (1 - p) * (1.5957691216f + 0.2140644488f * s);
}

#define TYPED "gelu.per_type.h"
#include "types.h"

static int ISA(gelu)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(gelu_range), c);
	return 0;
}

static int ISA(gelu_bwd)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(gelu_bwd_range), c);
	return 0;
}
