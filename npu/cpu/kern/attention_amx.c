//go:build cgo && linux && (amd64 || arm64)

// Attention in bfloat16 on the matrix unit. See Note [attention].
//
// Note [tiles]: the unit multiplies 16 rows of 32 elements by a tile that holds the pairs of such a column side by side, 16 rows of 16 pairs. A of a product
// is therefore stored by rows, B by pairs of rows. Since the scores are stored transposed, nothing of their size has to be transposed: P' by pairs of keys is
// B of O' = V'·P', dS' is that of dQ' = K'·dS', and by rows they are A of dV = P'·dO and dK = dS'·Q. K' or V' is made once per key head; the block of queries
// is stored both ways. The unit is so fast that exponentials are most of the work.
#include "attention.h"

#if !defined(__x86_64__) || !defined(__GNUC__) || defined(__clang__)

int kern_amx(void) { return 0; }
int64_t at_tiles_slot(const at_job *j) { return j->slot; }
void at_tiles(at_job *j) { (void)j; }

#else

#include <cpuid.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int amx;

// The kernel grants a process the unit's registers on request (ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA).
static void ask(void) {
	unsigned a, b, c, d, lo, hi;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) || !(d >> 24 & 1)) return; // AMX-BF16, AMX-TILE
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return;                            // XGETBV
	__asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	if ((lo >> 17 & 3) != 3) return;
	amx = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

int kern_amx(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, ask);
	return amx;
}

#pragma GCC target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2,prefer-vector-width=512")
#include "amx.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
// Queries are processed in pairs of tiles, W, against N keys: these fit in the first-level cache.
enum { M = AT_M, N = 256, W = 32 };
typedef __m512 F;
typedef uint16_t half;

// Sets 32×32 of c to (or with add, adds to it) the product of a, k pieces of 32 rows of 32, a step apart, and b, 16·k rows of 32 pairs. Row
// lengths in elements.
INLINE void product(float *c, int64_t ldc, const half *a, int64_t lda, int64_t step, const half *b, int64_t ldb, int64_t k, int add) {
	ldc *= 4;
	char *c1 = (char *)c + 16 * ldc;
	__asm__ volatile("" ::: "memory"); // the intrinsics do not declare that they read memory
	if (add) {
		_tile_loadd(0, c, ldc);
		_tile_loadd(1, c + 16, ldc);
		_tile_loadd(2, c1, ldc);
		_tile_loadd(3, c1 + 64, ldc);
	} else {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	}
	for (; k > 0; k--, a += step, b += 16 * ldb) {
		_tile_loadd(4, a, 2 * lda);
		_tile_loadd(6, b, 2 * ldb);
		_tile_loadd(7, b + 32, 2 * ldb);
		_tile_loadd(5, a + 16 * lda, 2 * lda);
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, c, ldc);
	_tile_stored(1, c + 16, ldc);
	_tile_stored(2, c1, ldc);
	_tile_stored(3, c1 + 64, ldc);
}

// 2^x with a relative error of 3e-6, a hundredth of bfloat16's rounding error. 0 below -127.
INLINE F exp2_of(F x) {
	const F magic = _mm512_set1_ps(12582912.0f);
	x = _mm512_max_ps(_mm512_set1_ps(-127), x);
	F t = x + magic, f = x - (t - magic);
	F p = _mm512_fmadd_ps(f, _mm512_set1_ps(9.582851082086563e-3f), _mm512_set1_ps(5.590642988681793e-2f));
	p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.4024099111557007e-1f));
	p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.931241750717163e-1f));
	p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1));
	return (F)_mm512_add_epi32((__m512i)p, _mm512_slli_epi32((__m512i)t, 23));
}

// Packs x of a key and y of the next into pairs.
INLINE __m512i pairs(F x, F y) {
	const __m512i mix = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	return _mm512_permutexvar_epi16(mix, (__m512i)_mm512_cvtne2ps_pbh(y, x));
}

// Transposes a square of 16×16 words.
INLINE void turn(__m512i *a) {
	const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	UNROLL for (int h = 1; h < 16; h *= 2) {
		__mmask16 odd = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(h));
		__m512i low = _mm512_mask_add_epi32(lane, odd, lane, _mm512_set1_epi32(16 - h)), high = _mm512_mask_add_epi32(_mm512_add_epi32(lane,
			_mm512_set1_epi32(h)), odd, lane, _mm512_set1_epi32(16));
		UNROLL for (int i = 0; i < 16; i++)
			if (!(i & h)) {
				__m512i p = _mm512_permutex2var_epi32(a[i], low, a[i + h]), q = _mm512_permutex2var_epi32(a[i], high, a[i + h]);
				a[i] = p, a[i + h] = q;
			}
	}
}

// Copies n rows of d, a stride apart, to rows of dp, with zeros after d, and after row n up to row all.
static void pack(half *dst, const half *src, int64_t stride, int64_t n, int64_t all, int64_t d, int64_t dp) {
	for (int64_t i = 0; i < n; i++, src += stride, dst += dp) {
		for (int64_t x = 0; x < dp; x += 32) {
			__mmask32 in = d - x >= 32 ? ~0u : d > x ? (1u << (d - x)) - 1 : 0;
			_mm512_storeu_si512(dst + x, _mm512_maskz_loadu_epi16(in, src + x));
		}
	}
	memset(dst, 0, (size_t)((all - n) * dp) * 2);
}

// Moves words of row i and column x, which are pairs of elements, to row x and column i: dst[dp/2][rows].
static void pairs_turned(half *dst, const half *src, int64_t rows, int64_t dp) {
	for (int64_t i = 0; i < rows; i += 16)
		for (int64_t x = 0; x < dp / 2; x += 16) {
			__m512i a[16];
			UNROLL for (int u = 0; u < 16; u++) a[u] = _mm512_loadu_si512(src + (i + u) * dp + 2 * x);
			turn(a);
			UNROLL for (int u = 0; u < 16; u++) _mm512_storeu_si512(dst + 2 * ((x + u) * rows + i), a[u]);
		}
}

// Elements of row i and of the next.
INLINE __m512i pair_of(const half *row, int64_t dp) {
	__m512i a = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)row)), b = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(row + dp)));
	return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}

// Pairs of rows: dst[rows/2][dp][2].
static void pairs_of_rows(half *dst, const half *src, int64_t rows, int64_t dp) {
	for (int64_t i = 0; i < rows; i += 2)
		for (int64_t x = 0; x < dp; x += 16) _mm512_storeu_si512(dst + i * dp + 2 * x, pair_of(src + i * dp + x, dp));
}

// dst[rows/32][dp][32]: pieces of 32 columns, so that the rows of a tile are adjacent.
static void turned(half *dst, const half *src, int64_t rows, int64_t dp) {
	for (int64_t i = 0; i < rows; i += 32)
		for (int64_t x = 0; x < dp; x += 16) {
			__m512i a[16];
			UNROLL for (int u = 0; u < 16; u++) a[u] = pair_of(src + (i + 2 * u) * dp + x, dp);
			turn(a);
			UNROLL for (int u = 0; u < 16; u++) _mm512_storeu_si512(dst + i * dp + (x + u) * 32, a[u]);
		}
}

// Sets n rows of d, a stride apart, to the columns of src[dp][M], each times its factor.
static void unpack_turned(half *dst, int64_t stride, const float *src, int64_t n, int64_t d, const float *factor) {
	for (int64_t m = 0; m < n; m += 16)
		for (int64_t x = 0; x < d; x += 16) {
			__m512i a[16];
			F f = _mm512_loadu_ps(factor + m);
			UNROLL for (int u = 0; u < 16; u++) a[u] = (__m512i)(_mm512_loadu_ps(src + (x + u) * M + m) * f);
			turn(a);
			__mmask16 in = (__mmask16)((1u << at_min(16, d - x)) - 1);
			for (int u = 0; u < 16 && m + u < n; u++) _mm256_mask_storeu_epi16(dst + (m + u) * stride + x, in, (__m256i)_mm512_cvtneps_pbh((F)a[u]));
		}
}

// Sets n rows of d, a stride apart, to rows of src times scale.
static void unpack(half *dst, int64_t stride, const float *src, int64_t n, int64_t d, int64_t dp, float scale) {
	for (int64_t i = 0; i < n; i++, src += dp, dst += stride)
		for (int64_t x = 0; x < d; x += 16)
			_mm256_mask_storeu_epi16(dst + x, (__mmask16)((1u << at_min(16, d - x)) - 1), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(src + x) * _mm512_set1_ps(scale)));
}

// Which keys the queries of a block see; as in attention.per_isa.h.
typedef struct {
	int causal;
	int64_t diag;
	const int32_t *seg;
	int32_t own[M];
} sight;

static sight look(const at_job *j, const at_block *k) {
	sight e = {.causal = j->causal};
	for (int64_t i = 0; j->seg && i < M; i++) e.own[i] = j->seg[k->b * j->s + k->q0 + at_min(i, k->n - 1)];
	return e;
}
static void turn_to(sight *e, const at_job *j, const at_block *k, int64_t t0) {
	e->diag = k->q0 + j->off - t0;
	e->seg = j->seg ? j->seg + k->b * j->s + t0 : 0;
}
// The first group of 32 queries that has one that sees key i or a later key, and the number of keys, of n, that any query before m sees.
INLINE int64_t from(const sight *e, int64_t i) { return e->causal && i > e->diag ? (i - e->diag) / 32 * 32 : 0; }
INLINE int64_t until(const sight *e, int64_t m, int64_t n) { return e->causal ? at_max(0, at_min(n, m + e->diag)) : n; }
INLINE __mmask16 seen(const sight *e, int64_t m, int64_t i) {
	const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	__mmask16 ok = 0xffff;
	if (e->causal) ok = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32((int)(i - e->diag - m)));
	return e->seg ? _mm512_mask_cmpeq_epi32_mask(ok, _mm512_loadu_si512(e->own + m), _mm512_set1_epi32(e->seg[i])) : ok;
}

typedef struct {
	half *k, *v, *vt, *q, *qv, *p;
	float *s, *o, *max, *sum, *factor;
	F scale;
} fwd_mem;

// Queries m…m+15 against n keys. Probabilities after the visible keys are 0 up to fill, which is even. max is that of the unscaled scores.
INLINE void soften(const fwd_mem *w, const sight *e, int64_t m, int64_t n, int64_t fill) {
	float *s = w->s + m % W;
	half *p = w->p + 2 * (m % W);
	int64_t end = until(e, m + 16, n), i = e->seg ? 0 : until(e, m + 1, n), at = 0;
	F old = _mm512_load_ps(w->max + m), top[4] = {old, old, old, old};
	for (; at + 8 <= i; at += 8)
		UNROLL for (int u = 0; u < 8; u++) top[u & 3] = _mm512_max_ps(top[u & 3], _mm512_load_ps(s + (at + u) * W));
	for (; at < i; at++) top[0] = _mm512_max_ps(top[0], _mm512_load_ps(s + at * W));
	for (; i < end; i++) {
		F x = _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), seen(e, m, i), _mm512_load_ps(s + i * W));
		_mm512_store_ps(s + i * W, x);
		top[0] = _mm512_max_ps(top[0], x);
	}
	if (end & 1) _mm512_store_ps(s + end * W, _mm512_set1_ps(-INFINITY));
	F now = _mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3]));
	_mm512_store_ps(w->max + m, now);
	now = w->scale * _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(now, _mm512_set1_ps(-INFINITY), _CMP_NEQ_UQ), now);
	F f = exp2_of(_mm512_fmsub_ps(old, w->scale, now)), sum[2] = {_mm512_load_ps(w->sum + m) * f, _mm512_setzero_ps()};
	_mm512_store_ps(w->factor + m, f);
	for (i = 0; i < end; i += 2) {
		F x = exp2_of(_mm512_fmsub_ps(_mm512_load_ps(s + i * W), w->scale, now)), y = exp2_of(_mm512_fmsub_ps(_mm512_load_ps(s + (i + 1) * W), w->scale, now));
		sum[0] += x, sum[1] += y;
		_mm512_store_si512(p + i * W, pairs(x, y));
	}
	_mm512_store_ps(w->sum + m, sum[0] + sum[1]);
	for (; i < fill; i += 2) _mm512_store_si512(p + i * W, _mm512_setzero_si512());
}

// Scales columns m…m+15 of o by their factors, unless all factors are 1.
INLINE void rescale(const fwd_mem *w, int64_t m, int64_t dp) {
	F f = _mm512_load_ps(w->factor + m);
	if (_mm512_cmp_ps_mask(f, _mm512_set1_ps(1), _CMP_NEQ_UQ))
		for (int64_t x = 0; x < dp; x++) _mm512_store_ps(w->o + x * M + m, _mm512_load_ps(w->o + x * M + m) * f);
}

static void fwd_block(const at_job *j, const fwd_mem *w, const at_block *k, at_ahead *ahead) {
	sight e = look(j, k);
	int64_t limit = at_limit(j, k->q0), dp = j->dp, started = 0;
	for (int i = 0; i < M; i++) w->max[i] = -INFINITY, w->sum[i] = 0;
	memset(w->o, 0, (size_t)(M * dp) * 4);
	for (int64_t t0 = 0; t0 < limit; t0 += N) {
		int64_t n = at_min(N, limit - t0);
		if (at_apart(j, k->b, k->q0, t0, n)) continue;
		turn_to(&e, j, k, t0);
		for (int64_t m = 0; m < k->n; m += W) {
			int64_t see = at_up(until(&e, m + W, n), 32);
			for (int64_t i = 0; i < see; i += 32, at_ask(ahead)) product(w->s + i * W, W, w->k + (t0 + i) * dp, dp, 32, w->qv + 2 * m, 2 * M, dp / 32, 0);
			for (int64_t i = m; see && i < m + W; i += 16, at_ask(ahead)) {
				soften(w, &e, i, n, see);
				if (started) rescale(w, i, dp);
			}
			for (int64_t x = 0; see && x < dp; x += 32, at_ask(ahead)) product(w->o + x * M + m, M, w->vt + t0 * dp + 32 * x, 32, 32 * dp, w->p, 2 * W, see / 32, 1);
		}
		started = 1;
	}
	float *lse = j->cmd->p[5];
	for (int64_t m = 0; lse && m < k->n; m++) lse[k->row + m] = w->max[m] * j->scale + logf(w->sum[m]);
	for (int64_t m = 0; m < M; m++) w->factor[m] = w->sum[m] == 0 ? 0 : 1 / w->sum[m];
}

static fwd_mem fwd_mem_of(const at_job *j, char **p) {
	int64_t keys = 2 * j->tp * j->dp, block = 2 * M * j->dp;
	fwd_mem w;
	w.k = at_take(p, keys), w.v = at_take(p, keys), w.vt = at_take(p, keys);
	w.q = at_take(p, block), w.qv = at_take(p, block), w.o = at_take(p, 2 * block);
	w.s = at_take(p, 4 * N * W), w.p = at_take(p, 2 * N * W);
	w.max = at_take(p, 4 * M), w.sum = at_take(p, 4 * M), w.factor = at_take(p, 4 * M);
	w.scale = _mm512_set1_ps(j->scale * 1.44269504f);
	return w;
}

static void tiles_fwd(const at_job *j, char *scratch, int64_t key_head, int64_t lo, int64_t hi) {
	void **a = j->cmd->p;
	int64_t d = j->d, dp = j->dp, at = at_keys(j, key_head);
	fwd_mem w = fwd_mem_of(j, &scratch);
	pack(w.k, (const half *)a[1] + at, j->g * d, j->t, j->tp, d, dp);
	pack(w.v, (const half *)a[2] + at, j->g * d, j->t, j->tp, d, dp);
	turned(w.vt, w.v, j->tp, dp);
	at_ahead ahead;
	tiles_on();
	for (int64_t i = lo; i < hi; i++) {
		at_block k = at_block_of(j, key_head, i);
		pack(w.q, (const half *)a[0] + k.at, k.stride, k.n, M, d, dp);
		pairs_turned(w.qv, w.q, M, dp);
		at_plan(&ahead, j, 2, key_head, i, lo, hi, at_limit(j, k.q0) * (4 + dp / 32) / 32 + 1);
		fwd_block(j, &w, &k, &ahead);
		unpack_turned((half *)a[4] + k.at, k.stride, w.o, k.n, d, w.factor);
	}
	_tile_release();
}

typedef struct {
	half *k, *v, *kt, *q, *go, *qv, *gv, *qn, *gn, *p, *ds, *dsn;
	float *s, *dp, *dq, *lse, *delta, *dk, *dv;
	F scale;
} bwd_mem;

// Two keys i, i+1 and 32 queries from m: computes P and dS from scores and dP, by rows, and dS by pairs too.
INLINE void harden(const bwd_mem *w, const sight *e, int64_t m, int64_t i, int64_t at, int64_t n, int whole) {
	F p[4], g[4];
	UNROLL for (int u = 0; u < 4; u++) {
		int64_t row = u / 2, col = m + u % 2 * 16;
		p[u] = exp2_of(_mm512_fmsub_ps(_mm512_load_ps(w->s + (at + row) * M + col), w->scale, _mm512_load_ps(w->lse + col)));
		if (!whole) p[u] = i + row < n ? _mm512_maskz_mov_ps(seen(e, col, i + row), p[u]) : _mm512_setzero_ps();
		g[u] = p[u] * (_mm512_load_ps(w->dp + (at + row) * M + col) - _mm512_load_ps(w->delta + col));
	}
	UNROLL for (int r = 0; r < 2; r++) {
		_mm512_store_si512(w->p + (at + r) * M + m, (__m512i)_mm512_cvtne2ps_pbh(p[2 * r + 1], p[2 * r]));
		_mm512_store_si512(w->ds + (at + r) * M + m, (__m512i)_mm512_cvtne2ps_pbh(g[2 * r + 1], g[2 * r]));
		_mm512_store_si512(w->dsn + i * M + 2 * (m + 16 * r), pairs(g[r], g[r + 2]));
	}
}

static void bwd_block(const at_job *j, const bwd_mem *w, const at_block *k, at_ahead *ahead) {
	sight e = look(j, k);
	int64_t limit = at_limit(j, k->q0), dp = j->dp;
	memset(w->dq, 0, (size_t)(M * dp) * 4);
	for (int64_t t0 = 0; t0 < limit; t0 += N) {
		int64_t n = at_min(N, limit - t0);
		if (at_apart(j, k->b, k->q0, t0, n)) continue;
		turn_to(&e, j, k, t0);
		for (int64_t i = 0; i < n; i += 32) {
			int64_t first = from(&e, i), t = (t0 + i) * dp, deep = (M - first) / 32;
			for (int64_t m = first; m < M; m += 32) {
				product(w->s + m, M, w->k + t, dp, 32, w->qv + 2 * m, 2 * M, dp / 32, 0);
				product(w->dp + m, M, w->v + t, dp, 32, w->gv + 2 * m, 2 * M, dp / 32, 0);
				int whole = !e.seg && until(&e, m + 1, n) >= i + 32;
				for (int64_t u = 0; u < 32; u += 2) {
					harden(w, &e, m, i + u, u, n, whole);
					if (u % 8 == 0) at_ask(ahead);
				}
			}
			for (int64_t x = 0; x < dp; x += 32) {
				product(w->dv + t + x, dp, w->p + first, M, 32, w->gn + first * dp + 2 * x, 2 * dp, deep, 1);
				product(w->dk + t + x, dp, w->ds + first, M, 32, w->qn + first * dp + 2 * x, 2 * dp, deep, 1);
			}
		}
		for (int64_t m = 0; m < M; m += 32)
			for (int64_t x = 0; x < dp; x += 32) product(w->dq + x * M + m, M, w->kt + t0 * dp + 32 * x, 32, 32 * dp, w->dsn + 2 * m, 2 * M, at_up(until(&e,
				m + 32, n), 32) / 32, 1);
	}
}

static bwd_mem bwd_mem_of(const at_job *j, char **p, float *sums) {
	int64_t keys = 2 * j->tp * j->dp, block = 2 * M * j->dp;
	bwd_mem w = {.dk = sums, .dv = sums ? sums + j->tp * j->dp : 0};
	w.k = at_take(p, keys), w.v = at_take(p, keys), w.kt = at_take(p, keys);
	w.q = at_take(p, block), w.go = at_take(p, block), w.qv = at_take(p, block), w.gv = at_take(p, block), w.qn = at_take(p, block), w.gn = at_take(p, block);
	w.dq = at_take(p, 2 * block), w.s = at_take(p, 4 * 32 * M), w.dp = at_take(p, 4 * 32 * M);
	w.p = at_take(p, 2 * 32 * M), w.ds = at_take(p, 2 * 32 * M), w.dsn = at_take(p, 2 * N * M);
	w.lse = at_take(p, 4 * M), w.delta = at_take(p, 4 * M);
	w.scale = _mm512_set1_ps(j->scale * 1.44269504f);
	return w;
}

// The logarithms, in units of log 2, and Σ do·o, of a block; like at_rows in attention.per_type.h.
static void rows_of(const at_job *j, const at_block *k, const half *go, float *l, float *delta) {
	const half *o = (const half *)j->cmd->p[4] + k->at;
	const float *lse = (const float *)j->cmd->p[5] + k->row;
	for (int64_t m = 0; m < M; m++) {
		l[m] = m < k->n && lse[m] != -INFINITY ? lse[m] * 1.44269504f : INFINITY;
		F sum = _mm512_setzero_ps();
		for (int64_t x = 0; m < k->n && x < j->d; x += 16) {
			__mmask16 in = (__mmask16)((1u << at_min(16, j->d - x)) - 1);
			F a = (F)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(go + m * j->dp + x))), 16);
			F b = (F)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(in, o + m * k->stride + x)), 16);
			sum += a * b;
		}
		delta[m] = _mm512_reduce_add_ps(sum);
	}
}

static void tiles_bwd(const at_job *j, char *scratch, float *sums, int64_t key_head, int64_t lo, int64_t hi) {
	void **a = j->cmd->p;
	int64_t d = j->d, dp = j->dp, at = at_keys(j, key_head);
	bwd_mem w = bwd_mem_of(j, &scratch, sums);
	memset(sums, 0, (size_t)(8 * j->tp * dp));
	pack(w.k, (const half *)a[2] + at, j->g * d, j->t, j->tp, d, dp);
	pack(w.v, (const half *)a[3] + at, j->g * d, j->t, j->tp, d, dp);
	turned(w.kt, w.k, j->tp, dp);
	float scale[M];
	for (int i = 0; i < M; i++) scale[i] = j->scale;
	at_ahead ahead;
	tiles_on();
	for (int64_t i = lo; i < hi; i++) {
		at_block k = at_block_of(j, key_head, i);
		pack(w.q, (const half *)a[1] + k.at, k.stride, k.n, M, d, dp);
		pack(w.go, (const half *)a[0] + k.at, k.stride, k.n, M, d, dp);
		pairs_turned(w.qv, w.q, M, dp);
		pairs_turned(w.gv, w.go, M, dp);
		pairs_of_rows(w.qn, w.q, M, dp);
		pairs_of_rows(w.gn, w.go, M, dp);
		rows_of(j, &k, w.go, w.lse, w.delta);
		at_plan(&ahead, j, 2, key_head, i, lo, hi, at_limit(j, k.q0) / 4 + 1);
		bwd_block(j, &w, &k, &ahead);
		unpack_turned((half *)a[7] + k.at, k.stride, w.dq, k.n, d, scale);
	}
	_tile_release();
}

static void tiles_end(const at_job *j, float *sums, int64_t key_head) {
	int64_t n = j->tp * j->dp, at = at_keys(j, key_head);
	for (int64_t p = 1; p < j->parts; p++) {
		const float *more = (const float *)((const char *)sums + p * j->sums);
		for (int64_t i = 0; i < 2 * n; i += 16) _mm512_storeu_ps(sums + i, _mm512_loadu_ps(sums + i) + _mm512_loadu_ps(more + i));
	}
	half *dk = j->cmd->p[8], *dv = j->cmd->p[9];
	if (dk) unpack(dk + at, j->g * j->d, sums, j->t, j->d, j->dp, j->scale);
	if (dv) unpack(dv + at, j->g * j->d, sums + n, j->t, j->d, j->dp, 1);
}

int64_t at_tiles_slot(const at_job *j) {
	char *p = 0;
	if (j->cmd->flags & AT_BWD)
		bwd_mem_of(j, &p, 0);
	else
		fwd_mem_of(j, &p);
	return p - (char *)0;
}

void at_tiles(at_job *j) { j->fwd = tiles_fwd, j->bwd = tiles_bwd, j->end = tiles_end; }

#endif
