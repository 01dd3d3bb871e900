//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "embedding_isa.h"
#include "kern.h"

// Ids are checked before anything is written. n[0] ids, n[1] rows of the table.
static int bad_id(kern_cmd *c, const int32_t *ids) {
	for (int64_t r = 0; r < c->n[0]; r++)
		if (ids[r] < 0 || ids[r] >= c->n[1])
			return kern_fail(c, "row %lld: id %d outside 0…%lld\nhint: the vocabulary of the text is larger than the model's", (long long)r, ids[r], (long long)c->n[1] - 1);
	return 0;
}
#include "isa.h"

TABLE(embedding);
TABLE(embedding_bwd);
