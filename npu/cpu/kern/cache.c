//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "cache.per_isa.h"
#include "kern.h"

// Note [cached]: a query reads its keys and values once for all heads that share them, CACHE_N at a time, which are in the cache for the second head. If a
// step of generation has too few queries and key heads for many threads, the keys of each are divided into chunks, whose maxima, sums and outputs are then
// combined in order. The division depends on shapes only.
// Note [walked]: a step of generation has one query in each text, and most of its time goes into waiting for keys and values. So it walks through memory as it
// lies, all heads of one key and then those of the next: prefetchers follow that, but not rows side by side, or pieces of rows (see kern_few_apart). Outputs
// are then summed in memory, which costs less than it gains. Where a text has several queries, the cache holds keys for the later ones.
enum { CACHE_N = 64, CACHE_HEADS = 16 };

// n: B S T H G D, keys in a chunk, chunks, type of keys and values. The workspace has a piece for each query, head and chunk: the query and its
// output so far, both of D padded to 16, maximum and sum.
typedef struct {
	const kern_cmd *c;
	int64_t b, s, t, h, g, d, chunk, chunks, per, dp, piece;
	float scale;
} cached;

static cached cached_of(const kern_cmd *c) {
	cached k = {.c = c, .b = c->n[0], .s = c->n[1], .t = c->n[2], .h = c->n[3], .g = c->n[4], .d = c->n[5], .chunk = c->n[6], .chunks = c->n[7]};
	k.per = k.h / k.g, k.dp = (k.d + 15) / 16 * 16, k.piece = 2 * k.dp + 16, k.scale = (float)c->f[0];
	return k;
}

// Positions are checked before anything is written. n: B S T and elements of a row.
static int bad_position(kern_cmd *c) {
	const int32_t *pos = c->p[2];
	for (int64_t i = 0; i < c->n[0] * c->n[1]; i++)
		if (pos[i] >= c->n[2])
			return kern_fail(c, "pos[%lld %lld]: position %d outside 0…%lld\n"
				"hint: the sequence is longer than the cache; make the cache larger or the sequence shorter",
				(long long)(i / c->n[1]), (long long)(i % c->n[1]), pos[i], (long long)c->n[2] - 1);
	return 0;
}
#include "isa.h"

TABLE(attention_cached);
TABLE(cache_write);
