// Attention in float32 arithmetic, for one instruction set. See Note [attention].

// A tile of the product has AT_R rows and up to AT_W vectors in registers.
#undef AT_R
#undef AT_W
#define AT_R (VL == 16 ? 8 : 4)
#define AT_W (VL == 4 ? 2 : 3)

enum { ISA(SET), ISA(ADD), ISA(SCALED) };

// C[AT_R][w vectors] = A·B (SET), C + A·B (ADD) or C·factor[row] + A·B (SCALED), summed over k. A's elements are a[row*ra + i*ka], B's rows b[i*ldb…].
INLINE void ISA(tile)(const int w, int64_t k, const float *a, int64_t ra, int64_t ka, const float *b, int64_t ldb, float *c, int64_t ldc, int mode,
	const float *factor) {
	V acc[AT_R][AT_W];
	UNROLL for (int r = 0; r < AT_R; r++)
		UNROLL for (int v = 0; v < w; v++) acc[r][v] = (V){0};
	for (int64_t i = 0; i < k; i++) {
		V x[AT_W];
		UNROLL for (int v = 0; v < w; v++) x[v] = ISA(ld_f32)(b + i * ldb + v * VL);
		UNROLL for (int r = 0; r < AT_R; r++) {
			V y = ISA(splat)(a[r * ra + i * ka]);
			UNROLL for (int v = 0; v < w; v++) acc[r][v] += y * x[v];
		}
	}
	UNROLL for (int r = 0; r < AT_R; r++) {
		float f = mode == ISA(SCALED) ? factor[r] : 1;
		UNROLL for (int v = 0; v < w; v++) {
			float *at = c + r * ldc + v * VL;
			ISA(st_f32)(at, mode == ISA(SET) ? acc[r][v] : ISA(ld_f32)(at) * f + acc[r][v]);
		}
	}
}

#define ISA_TILE(name, ra, ka)                                                                                                                          \
	NOINLINE void ISA(name)(int64_t w, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc, int mode, \
		const float *factor) { \
		for (int64_t n = (w + AT_W - 1) / AT_W; n > 0; n--) {                                                                                           \
			int64_t now = (w + n - 1) / n;                                                                                                              \
			if (now == 1) ISA(tile)(1, k, a, ra, ka, b, ldb, c, ldc, mode, factor);                                                                     \
			if (now == 2) ISA(tile)(2, k, a, ra, ka, b, ldb, c, ldc, mode, factor);                                                                     \
			if (AT_W > 2 && now == 3) ISA(tile)(AT_W, k, a, ra, ka, b, ldb, c, ldc, mode, factor);                                                      \
			w -= now, b += now * VL, c += now * VL;                                                                                                     \
		}                                                                                                                                               \
	}
// AT_R rows of a product that is w vectors wide, with A stored by rows or by columns.
ISA_TILE(rows, lda, 1)
ISA_TILE(columns, 1, lda)
#undef ISA_TILE

// 2^v with a relative error of 2e-7: a polynomial for the fraction; the integer part goes into the exponent. -inf gives 0.
INLINE V ISA(vexp2)(V v) {
#if VL == 16
	V k = (V)_mm512_roundscale_ps((__m512)v, 0);
#else
	V x = ISA(select)(v < -126, ISA(splat)(-126), v);
	V k = (x + 12582912.0f) - 12582912.0f;
#endif
	V f = v - k;
	V p = ISA(splat)(1.3264723820611835e-3f);
	p = p * f + 9.671512991189957e-3f;
	p = p * f + 5.550733581185341e-2f;
	p = p * f + 2.4022242426872253e-1f;
	p = p * f + 6.931470036506653e-1f;
	p = p * f + 1;
#if VL == 16
	return (V)_mm512_scalef_ps((__m512)p, (__m512)k);
#else
	p = (V)((I)p + (__builtin_convertvector(k, I) << 23));
	return ISA(select)(v != v, v, (V)((v >= -126) & (I)p));
#endif
}

INLINE V ISA(top)(V a, V b) { // b if either is NaN
#if VL == 16
	return (V)_mm512_max_ps((__m512)a, (__m512)b);
#elif VL == 8
	return (V)_mm256_max_ps((__m256)a, (__m256)b);
#else
	return ISA(vmax)(a, b);
#endif
}

// dst[x][AT_M] = scale·src[AT_M][x] for x < dp, in squares of VL: elements whose row and column differ in bit h are swapped.
NOINLINE void ISA(turn)(float *dst, const float *src, int64_t dp, float scale) {
	I lane;
	for (int i = 0; i < VL; i++) lane[i] = i;
	for (int64_t m = 0; m < AT_M; m += VL)
		for (int64_t x = 0; x < dp; x += VL) {
			V a[VL];
			UNROLL for (int i = 0; i < VL; i++) a[i] = ISA(ld_f32)(src + (m + i) * dp + x) * scale;
			UNROLL for (int h = 1; h < VL; h *= 2) {
				I odd = (lane & h) != 0, low = (~odd & lane) | (odd & (lane - h + VL)), high = (~odd & (lane + h)) | (odd & (lane + VL));
				UNROLL for (int i = 0; i < VL; i++)
					if (!(i & h)) {
						V p = __builtin_shuffle(a[i], a[i + h], low), q = __builtin_shuffle(a[i], a[i + h], high);
						a[i] = p, a[i + h] = q;
					}
			}
			UNROLL for (int i = 0; i < VL; i++) ISA(st_f32)(dst + (x + i) * AT_M + m, a[i]);
		}
}

// Which keys the queries of a block see.
typedef struct {
	int causal, segs;
	int64_t diag; // causal: query m sees keys up to m + diag of the current block of keys
	const int32_t *seg; // of those keys
	int32_t own[AT_M];  // segments of the queries
	float *hide;        // [key][query] of the current block of keys: 0, or -infinity where the query does not see the key; null: no mask
} ISA(sight);

static void ISA(look)(ISA(sight) *e, const at_job *j, const at_block *k, float *hide) {
	e->causal = j->causal, e->segs = j->seg != 0, e->hide = j->keys || j->mask ? hide : 0;
	for (int64_t i = 0; e->segs && i < AT_M; i++) e->own[i] = j->seg[k->b * j->s + k->q0 + at_min(i, k->n - 1)];
}
// Fills hide for n keys from t0 on, in squares of VL queries and keys. Missing queries and keys may be anything.
NOINLINE void ISA(fill_hide)(float *hide, const at_job *j, const at_block *k, int64_t t0, int64_t n) {
	const int32_t *keys = j->keys ? j->keys + k->b * j->t + t0 : 0;
	const int32_t *mask = j->mask ? j->mask + k->b * j->cmd->n[7] + k->h * j->cmd->n[8] + k->q0 * j->t + t0 : 0;
	const V never = ISA(splat)(-INFINITY);
	for (int64_t i = 0; i < n; i += VL) {
		int m = (int)at_min(VL, n - i);
		V all = {0};
		if (keys) all = ISA(select)((I)(m == VL ? ISA(ld_f32)((const float *)(keys + i)) : ISA(ldn_f32)((const float *)(keys + i), m)) != 0, (V){0}, never);
		for (int64_t q = 0; q < k->n; q += VL) {
			V b[VL];
			UNROLL for (int l = 0; l < VL; l++) {
				b[l] = all;
				if (!mask || q + l >= k->n) continue;
				const float *row = (const float *)(mask + (q + l) * j->t + i);
				b[l] = ISA(select)((I)(m == VL ? ISA(ld_f32)(row) : ISA(ldn_f32)(row, m)) != 0, all, never);
			}
			ISA(vturn)(b);
			UNROLL for (int l = 0; l < VL; l++) ISA(st_f32)(hide + (i + l) * AT_M + q, b[l]);
		}
	}
}
static void ISA(turn_to)(ISA(sight) *e, const at_job *j, const at_block *k, int64_t t0, int64_t n) {
	e->diag = k->q0 + j->off - t0;
	if (e->segs) e->seg = j->seg + k->b * j->s + t0;
	if (e->hide) ISA(fill_hide)(e->hide, j, k, t0, n);
}
// The first vector of queries that has one that sees key i or a later key.
INLINE int64_t ISA(from)(const ISA(sight) *e, int64_t i) { return e->causal && i > e->diag ? (i - e->diag) / VL : 0; }
// The number of keys, of n, that any query before m sees.
INLINE int64_t ISA(until)(const ISA(sight) *e, int64_t m, int64_t n) { return e->causal ? at_max(0, at_min(n, m + e->diag)) : n; }

// Sets all bits in the lanes of the queries m… that see key i. Keys from n on are outside this block of queries; if causal, no query sees them.
INLINE I ISA(seen)(const ISA(sight) *e, int64_t m, int64_t i, int64_t n, I lane) {
	I ok = ~(I){0};
	if (e->causal) ok = lane + (int32_t)(m + e->diag - i) >= 0;
	if (e->segs) {
		I own;
		memcpy(&own, e->own + m, sizeof own);
		ok &= own == e->seg[at_min(i, n - 1)]; // seg ends with the keys
	}
	return ok;
}

// A worker's memory, forward.
typedef struct {
	float *k, *v, *q, *qt, *o, *s, *max, *sum, *factor, *hide;
} ISA(fwd_mem);

// One vector of queries, m…, against n keys: S' becomes 2^(S'-max), and max, sum and factor follow.
INLINE void ISA(soften)(const ISA(fwd_mem) *w, const ISA(sight) *e, int64_t m, int64_t n) {
	I lane;
	for (int i = 0; i < VL; i++) lane[i] = i;
	float *s = w->s + m;
	int64_t end = ISA(until)(e, m + VL, n), i = e->segs || e->hide ? 0 : ISA(until)(e, m + 1, n);
	if (end <= 0) return;
	V old = ISA(ld_f32)(w->max + m), top[4] = {old, old, old, old}, sum[4] = {0};
	int64_t at = 0;
	for (; at + 4 <= i; at += 4)
		UNROLL for (int u = 0; u < 4; u++) top[u] = ISA(top)(top[u], ISA(ld_f32)(s + (at + u) * AT_M));
	for (; at < i; at++) top[0] = ISA(top)(top[0], ISA(ld_f32)(s + at * AT_M));
	for (; i < end; i++) {
		V x = ISA(ld_f32)(s + i * AT_M);
		if (e->hide) x += ISA(ld_f32)(e->hide + i * AT_M + m);
		x = ISA(select)(ISA(seen)(e, m, i, n, lane), x, ISA(splat)(-INFINITY));
		ISA(st_f32)(s + i * AT_M, x);
		top[0] = ISA(top)(top[0], x);
	}
	V now = ISA(top)(ISA(top)(top[0], top[1]), ISA(top)(top[2], top[3]));
	ISA(st_f32)(w->max + m, now);
	now = (V)((now > -INFINITY) & (I)now); // if no key is seen, 0 keeps the differences from becoming NaN
	V f = ISA(vexp2)(old - now);
	ISA(st_f32)(w->factor + m, f);
	for (i = 0; i + 4 <= end; i += 4)
		UNROLL for (int u = 0; u < 4; u++) {
			V p = ISA(vexp2)(ISA(ld_f32)(s + (i + u) * AT_M) - now);
			ISA(st_f32)(s + (i + u) * AT_M, p);
			sum[u] += p;
		}
	for (; i < end; i++) {
		V p = ISA(vexp2)(ISA(ld_f32)(s + i * AT_M) - now);
		ISA(st_f32)(s + i * AT_M, p);
		sum[0] += p;
	}
	ISA(st_f32)(w->sum + m, ISA(ld_f32)(w->sum + m) * f + ((sum[0] + sum[1]) + (sum[2] + sum[3])));
}

// A block of queries in qt against all keys: o before the division, max and sum.
static void ISA(fwd_block)(const at_job *j, const ISA(fwd_mem) *w, const at_block *k, at_ahead *ahead) {
	ISA(sight) e;
	ISA(look)(&e, j, k, w->hide);
	int64_t full = (k->n + VL - 1) / VL; // vectors of queries that there are
	for (int i = 0; i < AT_M; i++) w->max[i] = -INFINITY, w->sum[i] = 0, w->factor[i] = 1;
	int64_t limit = at_limit(j, k->q0), dp = j->dp;
	int mode = ISA(SET);
	for (int64_t t0 = 0; t0 < limit; t0 += AT_N) {
		int64_t n = at_min(AT_N, limit - t0);
		if (at_apart(j, k->b, k->q0, t0, n)) continue;
		ISA(turn_to)(&e, j, k, t0, n);
		for (int64_t i = 0; i < n; i += AT_R) {
			int64_t v = ISA(from)(&e, i);
			ISA(rows)(full - v, j->d, w->k + (t0 + i) * dp, dp, w->qt + v * VL, AT_M, w->s + i * AT_M + v * VL, AT_M, ISA(SET), 0);
			at_ask(ahead);
		}
		for (int64_t m = 0; m < k->n; m += VL) ISA(soften)(w, &e, m, n);
		for (int64_t m = 0; m < k->n; m += AT_R) {
			int64_t see = ISA(until)(&e, m + AT_R, n);
			if (see || mode == ISA(SET)) ISA(columns)(dp / VL, see, w->s + m, AT_M, w->v + t0 * dp, dp, w->o + m * dp, dp, mode, w->factor + m);
			at_ask(ahead);
		}
		mode = ISA(SCALED);
	}
	if (mode == ISA(SET)) memset(w->o, 0, (size_t)(AT_M * dp) * 4);
	for (int64_t m = 0; m < k->n; m++) w->factor[m] = w->sum[m] > 0 || w->sum[m] != w->sum[m] ? 1 / w->sum[m] : 0;
	float *lse = j->cmd->p[5];
	for (int64_t m = 0; lse && m < k->n; m++) lse[k->row + m] = w->max[m] * 0.69314718f + logf(w->sum[m]);
}

// A worker's memory, backward, and a unit's sums.
typedef struct {
	float *k, *v, *q, *go, *qt, *gt, *dq, *p, *ds, *lse, *delta, *dk, *dv, *hide;
} ISA(bwd_mem);

// Turns P' and dP', of AT_R keys i… and the queries from vector v to full-1, into probabilities and gradients of scores.
INLINE void ISA(harden)(const ISA(bwd_mem) *w, const ISA(sight) *e, int64_t v, int64_t full, int64_t i, int64_t n) {
	I lane;
	for (int l = 0; l < VL; l++) lane[l] = l;
	for (int64_t m = v * VL; m < full * VL; m += VL) {
		V lse = ISA(ld_f32)(w->lse + m), delta = ISA(ld_f32)(w->delta + m);
		int whole = !e->segs && ISA(until)(e, m + 1, n) >= i + AT_R;
		UNROLL for (int r = 0; r < AT_R; r++) {
			float *s = w->p + (i + r) * AT_M + m, *g = w->ds + (i + r) * AT_M + m;
			V p = ISA(ld_f32)(s) - lse;
			if (e->hide) p += ISA(ld_f32)(e->hide + (i + r) * AT_M + m);
			p = ISA(vexp2)(p);
			if (!whole) p = (V)(ISA(seen)(e, m, i + r, n, lane) & (I)p);
			ISA(st_f32)(s, p);
			ISA(st_f32)(g, p * (ISA(ld_f32)(g) - delta));
		}
	}
}

// A block of queries against all keys: dq, and its contributions to dk and dv.
static void ISA(bwd_block)(const at_job *j, const ISA(bwd_mem) *w, const at_block *k, at_ahead *ahead) {
	ISA(sight) e;
	ISA(look)(&e, j, k, w->hide);
	int64_t limit = at_limit(j, k->q0), dp = j->dp, wide = dp / VL, full = (k->n + VL - 1) / VL;
	memset(w->dq, 0, (size_t)(AT_M * dp) * 4);
	for (int64_t t0 = 0; t0 < limit; t0 += AT_N) {
		int64_t n = at_min(AT_N, limit - t0);
		if (at_apart(j, k->b, k->q0, t0, n)) continue;
		ISA(turn_to)(&e, j, k, t0, n);
		for (int64_t i = 0; i < n; i += AT_R) {
			int64_t v = ISA(from)(&e, i), m = v * VL, t = (t0 + i) * dp;
			float *p = w->p + i * AT_M + m, *ds = w->ds + i * AT_M + m;
			ISA(rows)(full - v, j->d, w->k + t, dp, w->qt + m, AT_M, p, AT_M, ISA(SET), 0);
			ISA(rows)(full - v, j->d, w->v + t, dp, w->gt + m, AT_M, ds, AT_M, ISA(SET), 0);
			ISA(harden)(w, &e, v, full, i, n);
			at_ask(ahead);
			ISA(rows)(wide, full * VL - m, p, AT_M, w->go + m * dp, dp, w->dv + t, dp, ISA(ADD), 0);
			ISA(rows)(wide, full * VL - m, ds, AT_M, w->q + m * dp, dp, w->dk + t, dp, ISA(ADD), 0);
			at_ask(ahead);
		}
		for (int64_t m = 0; m < k->n; m += AT_R) {
			int64_t see = ISA(until)(&e, m + AT_R, n);
			if (see) ISA(columns)(wide, see, w->ds + m, AT_M, w->k + t0 * dp, dp, w->dq + m * dp, dp, ISA(ADD), 0);
		}
	}
}

#define TYPED "attention.per_type.h"
#include "types.h"

static int ISA(attention)(kern_cmd *c, int nthreads) {
	at_job j = at_job_of(c);
	j.fwd = PICK(at_fwd);
	if (c->flags & AT_TILES) at_tiles(&j);
	return at_run(&j, nthreads);
}

static int ISA(attention_bwd)(kern_cmd *c, int nthreads) {
	at_job j = at_job_of(c);
	j.bwd = PICK(at_bwd);
	j.end = PICK(at_end);
	if (c->flags & AT_TILES) at_tiles(&j);
	return at_run(&j, nthreads);
}
