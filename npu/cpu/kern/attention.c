//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "attention_isa.h"
#include "attention.h"

// The least number of units that backward is cut into, where there are as many blocks.
enum { AT_UNITS = 8 };

at_job at_job_of(kern_cmd *c) {
	at_job j = {.cmd = c, .b = c->n[0], .s = c->n[1], .t = c->n[2], .h = c->n[3], .g = c->n[4], .d = c->n[5], .causal = c->flags & AT_CAUSAL};
	int back = c->flags & AT_BWD;
	j.scale = (float)c->f[0];
	j.seg = c->flags & AT_SEG ? c->p[back ? 6 : 3] : 0;
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

int at_apart(const at_job *j, int64_t b, int64_t q0, int64_t t0, int64_t n) {
	if (!j->seg) return 0;
	const int32_t *seg = j->seg + b * j->s;
	int32_t lo = seg[q0], hi = lo;
	for (int64_t i = q0, end = at_min(q0 + AT_M, j->s); i < end; i++) {
		lo = seg[i] < lo ? seg[i] : lo;
		hi = seg[i] > hi ? seg[i] : hi;
	}
	for (int64_t t = t0; t < t0 + n; t++)
		if (seg[t] >= lo && seg[t] <= hi) return 0;
	return 1;
}

// border is the first block, counted over all heads, before which the blocks cost at least so much.
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

// Rows lo…hi-1 of argument arg, the first of which is at an element.
static void list(at_ahead *a, const at_job *j, int arg, int64_t size, int64_t at, int64_t stride, int64_t lo, int64_t hi, int write) {
	if (!j->cmd->p[arg] || hi <= lo) return;
	a->list[a->n].at = (char *)j->cmd->p[arg] + (at + lo * stride) * size, a->list[a->n].stride = stride * size, a->list[a->n].rows = hi - lo;
	a->list[a->n++].write = write;
}

void at_plan(at_ahead *a, const at_job *j, int64_t size, int64_t key_head, int64_t i, int64_t lo, int64_t hi, int64_t calls) {
	int back = j->cmd->flags & AT_BWD, more = key_head + 1 < j->b * j->g;
	int64_t keys = j->g * j->d, first = j->t * (i - lo) / (hi - lo), last = j->t * (i + 1 - lo) / (hi - lo), rows = 0;
	at_block k = at_block_of(j, key_head, i), next = i + 1 < hi ? at_block_of(j, key_head, i + 1) : at_block_of(j, key_head + more, 0);
	*a = (at_ahead){.bytes = j->d * size};
	list(a, j, back ? 7 : 4, size, k.at, k.stride, 0, k.n, 1);
	list(a, j, 0, size, next.at, next.stride, 0, next.n, 0);
	if (back) {
		list(a, j, 1, size, next.at, next.stride, 0, next.n, 0);
		list(a, j, 4, size, next.at, next.stride, 0, next.n, 0);
	}
	for (int arg = back ? 2 : 1; more && arg <= (back ? 3 : 2); arg++) list(a, j, arg, size, at_keys(j, key_head + 1), keys, first, last, 0);
	for (int arg = 8; back && j->parts == 1 && arg <= 9; arg++) list(a, j, arg, size, at_keys(j, key_head), keys, first, last, 1);
	for (int n = 0; n < a->n; n++) rows += a->list[n].rows;
	a->share = (rows + calls - 1) / calls;
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
