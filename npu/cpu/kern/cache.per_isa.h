// Attention against a cache, for one instruction set: keys and values of either type.

// Lane i of the result is the sum of vector a[i].
INLINE V ISA(sums)(V *a) {
	I lane;
	for (int i = 0; i < VL; i++) lane[i] = i;
	UNROLL for (int h = 1; h < VL; h *= 2) {
		I odd = (lane & h) != 0, low = (~odd & lane) | (odd & (lane - h + VL)), high = (~odd & (lane + h)) | (odd & (lane + VL));
		UNROLL for (int i = 0; i < VL; i += 2 * h) a[i] = __builtin_shuffle(a[i], a[i + h], low) + __builtin_shuffle(a[i], a[i + h], high);
	}
	return a[0];
}

#define TYPED "cache.per_type.h"
#include "types.h"

// Combines the chunks of query i, of all queries and heads, in order.
static void ISA(join)(void *ctx, int64_t lo, int64_t hi) {
	const cached *k = ctx;
	for (int64_t i = lo; i < hi; i++) {
		int64_t row = i / k->h, head = i % k->h;
		float *first = (float *)k->c->ws + ((row * k->g + head / k->per) * k->chunks * k->per + head % k->per) * k->piece, *o = first + k->dp;
		float top = first[2 * k->dp], sum = first[2 * k->dp + 1];
		for (int64_t n = 1; n < k->chunks; n++) {
			const float *p = first + n * k->per * k->piece, *more = p + k->dp;
			if (!(p[2 * k->dp + 1] > 0) && p[2 * k->dp + 1] == p[2 * k->dp + 1]) continue;
			float both = top > p[2 * k->dp] ? top : p[2 * k->dp], f = sum != 0 ? expf(top - both) : 0, g = expf(p[2 * k->dp] - both);
			for (int64_t x = 0; x < k->dp; x += VL) ISA(st_f32)(o + x, ISA(ld_f32)(o + x) * f + ISA(ld_f32)(more + x) * g);
			sum = sum * f + p[2 * k->dp + 1] * g, top = both;
		}
		float f = sum != 0 ? 1 / sum : 0;
		for (int64_t x = 0; x < k->d; x++)
			if (k->c->dt == KERN_BF16)
				ISA(st1_bf16)((uint16_t *)k->c->p[4] + i * k->d + x, o[x] * f);
			else
				((float *)k->c->p[4])[i * k->d + x] = o[x] * f;
	}
}

// attention_cached: q, k, v, pos, o.
static int ISA(attention_cached)(kern_cmd *c, int nthreads) {
	cached k = cached_of(c);
	kern_for(nthreads, k.b * k.s * k.g * k.chunks, k.chunk * k.d * k.per, c->n[8] == KERN_BF16 ? ISA(cached_units_bf16) : ISA(cached_units_f32), &k);
	kern_for(nthreads, k.b * k.s * k.h, k.dp * k.chunks, ISA(join), &k);
	return 0;
}

// cache_write: cache, x, pos, cache. Rows of one cache are written in order: of two at one position the later wins.
static int ISA(cache_write)(kern_cmd *c, int nthreads) {
	if (bad_position(c)) return 1;
	kern_for(nthreads, c->n[0], c->n[1] * c->n[3], PICK(cache_rows), c);
	return 0;
}
