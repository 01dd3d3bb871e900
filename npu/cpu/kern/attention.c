//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "attention.per_isa.h"
#include "attention.h"

// The minimum number of units of backward, if there are that many blocks.
enum { AT_UNITS = 8 };

at_job at_job_of(kern_cmd *c) {
	at_job j = {.cmd = c, .b = c->n[0], .s = c->n[1], .t = c->n[2], .h = c->n[3], .g = c->n[4], .d = c->n[5], .causal = c->flags & AT_CAUSAL};
	int back = c->flags & AT_BWD;
	j.scale = (float)c->f[0];
	j.seg = c->flags & AT_SEG ? c->p[back ? 6 : 3] : 0;
	if (c->flags & AT_MASKED) j.keys = c->p[10], j.mask = c->p[11];
	j.per = j.h / j.g, j.off = j.t - j.s;
	j.blocks = (j.s + AT_M - 1) / AT_M;
	for (int64_t i = 0; i < j.blocks; i++) j.head += at_limit(&j, i * AT_M);
	int64_t heads = at_max(1, j.b * j.g);
	j.parts = back ? at_max(1, at_min((AT_UNITS + heads - 1) / heads, j.per * j.blocks)) : 1;
	if (c->flags & AT_TILES) {
		j.dp = at_up(j.d, 32), j.tp = at_up(j.t, 64);
		j.slot = at_tiles_slot(&j);
	} else {
		j.dp = at_up(j.d, 16), j.tp = at_up(j.t, 16);
		j.slot = 4 * (2 * j.tp * j.dp + (back ? 5 : 3) * AT_M * j.dp + (back ? 2 : 1) * AT_N * AT_M + 4 * AT_M);
	}
	if (c->flags & AT_MASKED) j.slot += 4 * AT_N * AT_M;
	j.sums = back ? 4 * 2 * j.tp * j.dp : 0;
	if (j.parts == 1) j.slot += j.sums;
	return j;
}

static int64_t units(const at_job *j) { return j->b * j->g * (j->cmd->flags & AT_BWD ? j->parts : j->per * j->blocks); }

int64_t at_units(const kern_cmd *c) {
	at_job j = at_job_of((kern_cmd *)c);
	return units(&j);
}

int64_t at_workspace(const kern_cmd *c) {
	at_job j = at_job_of((kern_cmd *)c);
	return j.slot * c->n[6] + (j.parts > 1 ? units(&j) * j.sums : 0);
}

// border is the first block, numbered across all heads, such that the blocks before it cost at least so much.
static int64_t border(const at_job *j, int64_t cost) {
	if (j->head == 0) return 0;
	int64_t head = cost / j->head, i = 0;
	for (cost %= j->head; cost > 0; i++) cost -= at_limit(j, i * AT_M);
	return head * j->blocks + i;
}

static void forward(void *ctx, int64_t lo, int64_t hi) {
	const at_job *j = ctx;
	int64_t all = j->b * j->h * j->head, each = j->per * j->blocks;
	for (int64_t w = lo; w < hi; w++) {
		int64_t i = border(j, all * w / j->workers), end = border(j, all * (w + 1) / j->workers);
		while (i < end) {
			int64_t k = i / each, stop = at_min(end, (k + 1) * each);
			j->fwd(j, (char *)j->cmd->ws + w * j->slot, k, i - k * each, stop - k * each);
			i = stop;
		}
	}
}

static float *unit_sums(const at_job *j, int64_t unit) { return (float *)((char *)j->cmd->ws + j->cmd->n[6] * j->slot + unit * j->sums); }

static void backward(void *ctx, int64_t lo, int64_t hi) {
	const at_job *j = ctx;
	int64_t n = units(j), key_head = j->per * j->head;
	for (int64_t w = lo; w < hi; w++) {
		char *scratch = (char *)j->cmd->ws + w * j->slot;
		for (int64_t u = n * w / j->workers; u < n * (w + 1) / j->workers; u++) {
			int64_t k = u / j->parts, p = u % j->parts;
			float *sums = j->parts > 1 ? unit_sums(j, u) : (float *)(scratch + j->slot - j->sums);
			j->bwd(j, scratch, sums, k, border(j, key_head * p / j->parts), border(j, key_head * (p + 1) / j->parts));
			if (j->parts == 1) j->end(j, sums, k);
		}
	}
}

static void ends(void *ctx, int64_t lo, int64_t hi) {
	const at_job *j = ctx;
	for (int64_t k = lo; k < hi; k++) j->end(j, unit_sums(j, k * j->parts), k);
}

int at_run(at_job *j, int nthreads) {
	int back = j->cmd->flags & AT_BWD;
	int64_t n = units(j), cost = j->b * j->h * j->head * AT_M;
	j->workers = at_max(1, at_min(at_min(nthreads, j->cmd->n[6]), n));
	kern_for(nthreads, j->workers, cost / j->workers, back ? backward : forward, j);
	if (j->parts > 1) kern_for(nthreads, j->b * j->g, j->tp * j->dp * j->parts, ends, j);
	return 0;
}

#include "isa.h"

TABLE(attention);
TABLE(attention_bwd);
