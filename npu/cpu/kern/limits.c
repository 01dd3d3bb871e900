//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "limits.per_isa.h"
#include "limits.h"
#include <time.h>
#define UNROLL_ALL _Pragma("GCC unroll 16")
// Chains of multiply-adds that do not depend on one another: two a cycle, of four to five cycles each, and they fit in 16 registers.
enum { LIMIT_CHAINS = 12 };
// The compiler must take what p points to for used.
#define limit_keep(p) __asm__ volatile("" ::"r"(p) : "memory")
#include "isa.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
// Processors with AVX-512 that lack BF16 run the kernels of AVX2, but the library uses their 512-bit multiply-adds.
__attribute__((target("avx512f,prefer-vector-width=512"))) static void limit_fma_wide(void *ctx, int64_t lo, int64_t hi) {
	(void)lo, (void)hi;
	const limit_job *j = ctx;
	__m512 s[LIMIT_CHAINS], x = _mm512_set1_ps(j->x), y = _mm512_set1_ps(j->y);
	UNROLL_ALL for (int k = 0; k < LIMIT_CHAINS; k++) s[k] = _mm512_set1_ps((float)k);
	for (int64_t r = 0; r < j->rounds; r++) {
		UNROLL_ALL for (int k = 0; k < LIMIT_CHAINS; k++) s[k] = _mm512_fmadd_ps(s[k], x, y);
	}
	__m512 all = s[0];
	UNROLL_ALL for (int k = 1; k < LIMIT_CHAINS; k++) all = _mm512_add_ps(all, s[k]);
	limit_keep(&all);
}
int limit_wide(void) {
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") != 0;
}
static const limit_loop wide[] = {{LIMIT_FMA, limit_fma_wide, 32 * LIMIT_CHAINS}, {0, 0, 0}};
static const limit_loop *const loops[] = {limit_loops_base, limit_loops_v3, limit_loops_v4, wide};
#else
int limit_wide(void) { return 0; }
static const limit_loop *const loops[] = {limit_loops_base, limit_loops_base, limit_loops_base, limit_loops_base};
#endif

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// pass runs a loop once on all threads and returns its time. A part of arithmetic has as much work as any other, whatever its lines.
static double pass(const limit_loop *l, limit_job *j, int64_t lines, int nthreads) {
	double begin = now();
	kern_for(nthreads, lines, kern_grain, l->fn, j);
	return now() - begin;
}

// shortest is the time of the shortest of three passes, or of the first that is shorter than least: other programs may interrupt one.
static double shortest(const limit_loop *l, limit_job *j, int64_t lines, int nthreads, double least) {
	double top = pass(l, j, lines, nthreads);
	for (int i = 0; i < 2 && top >= least && top < 20 * least; i++) {
		double took = pass(l, j, lines, nthreads);
		if (took < top) top = took;
	}
	return top;
}

// best is the best rate of a loop. Rounds are doubled until a pass is so long that starting the threads does not count.
static double best(const limit_loop *l, limit_job *j, int64_t lines, int nthreads, double seconds) {
	const double least = 300e-6;
	double top = 0;
	const int passes[] = {[LIMIT_READ] = 1, [LIMIT_COPY] = 2, [LIMIT_ADD] = 3}; // over the lines
	for (j->rounds = 1; shortest(l, j, lines, nthreads, least) < least && j->rounds < (int64_t)1 << 40;) j->rounds *= 2;
	double end = now() + seconds;
	do {
		double took = pass(l, j, lines, nthreads);
		double work = l->flop ? (double)l->flop * nthreads : 64.0 * (double)(lines * passes[l->what]);
		work *= (double)j->rounds;
		if (took > 0 && work / took > top) top = work / took;
	} while (now() < end);
	return top;
}

double limit_best(int what, int isa, void *a, void *b, int64_t lines, int nthreads, double seconds) {
	limit_job j = {a, b, 1, 1 - 0x1p-20f, 0x1p-20f};
	limit_loop tiles[] = {limit_tiles(), {0, 0, 0}};
	if (what >= LIMIT_FMA) lines = nthreads;
	double top = 0;
	for (const limit_loop *l = what == LIMIT_TILES ? tiles : loops[isa]; l->what; l++) {
		double rate = l->what == what ? best(l, &j, lines, nthreads, seconds) : 0;
		if (rate > top) top = rate;
	}
	return top;
}

static const limit_loop *loop_of(int what, int isa) {
	for (const limit_loop *l = loops[isa]; l->what; l++)
		if (l->what == what) return l;
	return 0;
}

void limit_compare(int isa, int turns, double *f32, double *bf16) {
	limit_job j = {0, 0, 8192, 1 - 0x1p-20f, 0x1p-20f};
	const limit_loop *l[] = {loop_of(LIMIT_FMA, isa), loop_of(LIMIT_DOT, isa)};
	double *best[] = {f32, bf16};
	*f32 = *bf16 = 0;
	for (int i = 0; i < 2 * turns; i++) {
		if (!l[i % 2]) continue;
		double took = pass(l[i % 2], &j, 1, 1), rate = (double)l[i % 2]->flop * (double)j.rounds / took;
		if (took > 0 && rate > *best[i % 2]) *best[i % 2] = rate;
	}
}

static void nothing(void *ctx, int64_t lo, int64_t hi) { (void)ctx, (void)lo, (void)hi; }

double limit_region(int nthreads) {
	double top = 1;
	for (int i = 0; i < 200; i++) {
		double begin = now();
		for (int k = 0; k < 10; k++) kern_for(nthreads, nthreads, kern_grain, nothing, 0);
		double took = (now() - begin) / 10;
		if (took < top) top = took;
	}
	return top;
}
