//go:build cgo && linux && (amd64 || arm64)

// The plan that both forms of attention share: which keys a block of queries can skip, and which rows to prefetch.
#include "attention.h"

int at_apart(const at_job *j, int64_t b, int64_t q0, int64_t t0, int64_t n) {
	if (j->keys) {
		int64_t t = t0;
		while (t < t0 + n && !j->keys[b * j->t + t]) t++;
		if (t == t0 + n) return 1;
	}
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

// Rows lo…hi-1 of argument arg; the first begins at the given element.
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
