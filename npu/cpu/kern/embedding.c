//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "embedding.per_isa.h"
#include "kern.h"

#include <stdio.h>

// Ids are checked before anything is written. n[0] ids, n[1] rows of the table, n[3] ids in a sequence.
static int bad_id(kern_cmd *c, const int32_t *ids) {
	for (int64_t r = 0; r < c->n[0]; r++)
		if (ids[r] < 0 || ids[r] >= c->n[1]) {
			char place[48];
			if (c->n[3] < c->n[0])
				snprintf(place, sizeof place, "%lld %lld", (long long)(r / c->n[3]), (long long)(r % c->n[3]));
			else
				snprintf(place, sizeof place, "%lld", (long long)r);
			return kern_fail(c, "ids[%s]: id %d outside 0…%lld\nhint: the tokens come from a larger vocabulary than the table has rows",
				place, ids[r], (long long)c->n[1] - 1);
		}
	return 0;
}
#include "isa.h"

TABLE(embedding);
TABLE(embedding_bwd);
