// Dropout for one instruction set. The mask is a function of seed, layer and index (see npu/kinds.go), so the backward pass is the same kernel.
typedef uint64_t ISA(L) __attribute__((vector_size(8 * VL)));

// All ones in the lanes that are kept; i is the index of the first lane. z has 64 bits.
INLINE I ISA(kept)(uint64_t seed, uint64_t i, uint64_t least) {
	ISA(L) z;
	for (int l = 0; l < VL; l++) z[l] = (uint64_t)l;
	z = seed + (z + (i + 1)) * UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	z ^= z >> 31;
	return __builtin_convertvector(z >> 40, I) >= (int32_t)least; // 24 bits
}

#define TYPED "dropout.per_type.h"
#include "types.h"

// n: elements, id, elements of a row (0: each for itself). f: p. Arguments x, seed, y.
static int ISA(dropout)(kern_cmd *c, int nthreads) {
	kern_for(nthreads, (c->n[0] + 1023) / 1024, 1024, PICK(dropout_range), c);
	return 0;
}
