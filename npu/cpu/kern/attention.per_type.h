// Loads and stores of attention, for one instruction set and element type.
#include "type.h"

// Reads n rows of d elements, a stride apart, into float32 rows of dp, with zeros after d, and after row n up to row all.
static void FN(at_pack)(float *dst, const EL *src, int64_t stride, int64_t n, int64_t all, int64_t d, int64_t dp) {
	for (int64_t i = 0; i < n; i++, src += stride, dst += dp) {
		int64_t x = 0;
		for (; x + VL <= d; x += VL) ISA(st_f32)(dst + x, CAT(ld_, ISA(E))(src + x));
		for (; x < d; x++) dst[x] = LD1(src + x);
		for (; x < dp; x++) dst[x] = 0;
	}
	if (all > n) memset(dst, 0, (size_t)((all - n) * dp) * 4);
}

// Sets n rows of dst, a stride apart, to rows of src times scale, and times factor[row] if factor is not null.
static void FN(at_unpack)(EL *dst, int64_t stride, const float *src, int64_t n, int64_t d, int64_t dp, float scale, const float *factor) {
	for (int64_t i = 0; i < n; i++, src += dp, dst += stride) {
		float f = factor ? factor[i] * scale : scale;
		int64_t x = 0;
		for (; x + VL <= d; x += VL) CAT(st_, ISA(E))(dst + x, ISA(ld_f32)(src + x) * f);
		for (; x < d; x++) ST1(dst + x, src[x] * f);
	}
}

static void FN(at_fwd)(const at_job *j, char *scratch, int64_t key_head, int64_t lo, int64_t hi) {
	void **a = j->cmd->p;
	int64_t d = j->d, dp = j->dp, at = at_keys(j, key_head);
	ISA(fwd_mem) w;
	w.k = at_take(&scratch, 4 * j->tp * dp), w.v = at_take(&scratch, 4 * j->tp * dp);
	w.q = at_take(&scratch, 4 * AT_M * dp), w.qt = at_take(&scratch, 4 * AT_M * dp), w.o = at_take(&scratch, 4 * AT_M * dp);
	w.s = at_take(&scratch, 4 * AT_M * AT_N);
	w.max = at_take(&scratch, 4 * AT_M), w.sum = at_take(&scratch, 4 * AT_M), w.factor = at_take(&scratch, 4 * AT_M);
	if (j->keys || j->mask) w.hide = at_take(&scratch, 4 * AT_N * AT_M);
	FN(at_pack)(w.k, (const EL *)a[1] + at, j->g * d, j->t, j->tp, d, dp);
	FN(at_pack)(w.v, (const EL *)a[2] + at, j->g * d, j->t, j->tp, d, dp);
	at_ahead ahead;
	for (int64_t i = lo; i < hi; i++) {
		at_block k = at_block_of(j, key_head, i);
		FN(at_pack)(w.q, (const EL *)a[0] + k.at, k.stride, k.n, AT_M, d, dp);
		ISA(turn)(w.qt, w.q, dp, j->scale * 1.44269504f);
		at_plan(&ahead, j, sizeof(EL), key_head, i, lo, hi, at_limit(j, k.q0) / AT_R * 3 / 2 + 1);
		ISA(fwd_block)(j, &w, &k, &ahead);
		FN(at_unpack)((EL *)a[4] + k.at, k.stride, w.o, k.n, d, dp, 1, w.factor);
	}
}

// The logarithms, and Σ do·o, of the rows of a block. Missing rows, and rows that see nothing, get probabilities of 0.
static void FN(at_rows)(const at_job *j, const at_block *k, float *l, float *delta) {
	const EL *go = (const EL *)j->cmd->p[0] + k->at, *o = (const EL *)j->cmd->p[4] + k->at;
	const float *lse = (const float *)j->cmd->p[5] + k->row;
	for (int64_t m = 0; m < AT_M; m++) {
		l[m] = INFINITY, delta[m] = 0;
		if (m >= k->n) continue;
		if (lse[m] != -INFINITY) l[m] = lse[m] * 1.44269504f;
		V sum = {0};
		float rest = 0;
		int64_t x = 0, at = m * k->stride;
		for (; x + VL <= j->d; x += VL) sum += CAT(ld_, ISA(E))(go + at + x) * CAT(ld_, ISA(E))(o + at + x);
		for (; x < j->d; x++) rest += LD1(go + at + x) * LD1(o + at + x);
		delta[m] = ISA(vsum)(sum) + rest;
	}
}

static void FN(at_bwd)(const at_job *j, char *scratch, float *sums, int64_t key_head, int64_t lo, int64_t hi) {
	void **a = j->cmd->p;
	int64_t d = j->d, dp = j->dp, at = at_keys(j, key_head), block = 4 * AT_M * dp, keys = 4 * j->tp * dp;
	ISA(bwd_mem) w = {.dk = sums, .dv = sums + j->tp * dp};
	memset(sums, 0, (size_t)(2 * keys));
	w.k = at_take(&scratch, keys), w.v = at_take(&scratch, keys);
	w.q = at_take(&scratch, block), w.go = at_take(&scratch, block), w.qt = at_take(&scratch, block), w.gt = at_take(&scratch, block),
		w.dq = at_take(&scratch, block);
	w.p = at_take(&scratch, 4 * AT_M * AT_N), w.ds = at_take(&scratch, 4 * AT_M * AT_N);
	w.lse = at_take(&scratch, 4 * AT_M), w.delta = at_take(&scratch, 4 * AT_M);
	if (j->keys || j->mask) w.hide = at_take(&scratch, 4 * AT_N * AT_M);
	FN(at_pack)(w.k, (const EL *)a[2] + at, j->g * d, j->t, j->tp, d, dp);
	FN(at_pack)(w.v, (const EL *)a[3] + at, j->g * d, j->t, j->tp, d, dp);
	at_ahead ahead;
	for (int64_t i = lo; i < hi; i++) {
		at_block k = at_block_of(j, key_head, i);
		FN(at_pack)(w.q, (const EL *)a[1] + k.at, k.stride, k.n, AT_M, d, dp);
		FN(at_pack)(w.go, (const EL *)a[0] + k.at, k.stride, k.n, AT_M, d, dp);
		ISA(turn)(w.qt, w.q, dp, j->scale * 1.44269504f);
		ISA(turn)(w.gt, w.go, dp, 1);
		FN(at_rows)(j, &k, w.lse, w.delta);
		at_plan(&ahead, j, sizeof(EL), key_head, i, lo, hi, at_limit(j, k.q0) / AT_R * 2 + 1);
		ISA(bwd_block)(j, &w, &k, &ahead);
		FN(at_unpack)((EL *)a[7] + k.at, k.stride, w.dq, k.n, d, dp, j->scale, 0);
	}
}

static void FN(at_end)(const at_job *j, float *sums, int64_t key_head) {
	int64_t n = j->tp * j->dp, at = at_keys(j, key_head);
	for (int64_t p = 1; p < j->parts; p++) {
		const float *more = (const float *)((const char *)sums + p * j->sums);
		for (int64_t i = 0; i < 2 * n; i += VL) ISA(st_f32)(sums + i, ISA(ld_f32)(sums + i) + ISA(ld_f32)(more + i));
	}
	EL *dk = j->cmd->p[8], *dv = j->cmd->p[9];
	if (dk) FN(at_unpack)(dk + at, j->g * j->d, sums, j->t, j->d, j->dp, j->scale, 0);
	if (dv) FN(at_unpack)(dv + at, j->g * j->d, sums + n, j->t, j->d, j->dp, 1, 0);
}
