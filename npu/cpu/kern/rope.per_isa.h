// Rotary positions for one instruction set. n: tokens (batch times length), length, heads, width of a head, positions in the table; v: frequencies as float64.

// Swaps adjacent elements.
INLINE V ISA(swap)(V v) {
#if VL == 16
	return (V)_mm512_permute_ps((__m512)v, 0xb1);
#elif VL == 8
	return (V)_mm256_permute_ps((__m256)v, 0xb1);
#else
	return __builtin_shuffle(v, (I){1, 0, 3, 2});
#endif
}

#define LDF(p) (n == VL ? ISA(ld_f32)(p) : ISA(ldn_f32)(p, n))
#define TYPED "rope.per_type.h"
#include "types.h"
#undef LDF

static int ISA(rope)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, c->n[0], c->n[2] * c->n[3], PICK(rope_tokens), c);
	return 0;
}
