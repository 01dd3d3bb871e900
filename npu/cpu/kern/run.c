//go:build cgo && linux && (amd64 || arm64)

#define _GNU_SOURCE
#include "team.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int max_threads(void);

int kern_run(kern_cmd *c, int nthreads) {
	c->err[0] = 0;
	return c->fn(c, nthreads > 0 ? nthreads : max_threads());
}

int kern_exec(void *self, void *stream) {
	((kern_cmd *)self)->stream = stream;
	return kern_run(self, ((kern_cmd *)self)->threads);
}

int kern_exec_others(void *self, void *stream) { return kern_exec(self, stream); }

int kern_fail(kern_cmd *c, const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(c->err, sizeof c->err, format, args);
	va_end(args);
	return 1;
}

kern_fn kern_find(const char *name, int isa) {
#define ENTRY(name) {#name, kern_##name},
	static const struct {
		const char *name;
		const kern_fn *fn;
	} all[] = {KERN_LIST(ENTRY)};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i].name, name)) return all[i].fn[isa];
	return 0;
}

int kern_isa(void) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return KERN_BASE;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512bf16"))
		return KERN_V4;
	return KERN_V3;
#else
	return KERN_BASE;
#endif
}

// libgomp, if present. Its ABI for "#pragma omp parallel" is GOMP_parallel; it is resolved at run time because the binary must start without
// it, and because the environment that configures it (OMP_WAIT_POLICY, …) is set before it is loaded.
static void (*gomp_parallel)(void (*)(void *), void *, unsigned, unsigned);
static int (*omp_thread)(void), (*omp_threads)(void), (*omp_max)(void);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void resolve(void) {
	void *h = RTLD_DEFAULT;
	if (!dlsym(h, "GOMP_parallel")) {
		h = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_LOCAL);
		if (!h) return;
	}
	omp_thread = (int (*)(void))dlsym(h, "omp_get_thread_num");
	omp_threads = (int (*)(void))dlsym(h, "omp_get_num_threads");
	omp_max = (int (*)(void))dlsym(h, "omp_get_max_threads");
	if (omp_thread && omp_threads && omp_max) gomp_parallel = (void (*)(void (*)(void *), void *, unsigned, unsigned))dlsym(h, "GOMP_parallel");
}

static int max_threads(void) {
	pthread_once(&once, resolve);
	return gomp_parallel ? omp_max() : 1;
}

struct loop {
	void (*fn)(void *, int64_t, int64_t);
	void *ctx;
	int64_t n, parts;
};

static void part(void *loop, int64_t t) {
	struct loop *l = loop;
	int64_t lo = l->n * t / l->parts, hi = l->n * (t + 1) / l->parts;
	if (lo < hi) l->fn(l->ctx, lo, hi);
}

// OpenMP's team may be smaller than requested (nesting, limits), so each thread takes every team-th part.
static void body(void *loop) {
	struct loop *l = loop;
	for (int64_t t = omp_thread(), team = omp_threads(); t < l->parts; t += team) part(l, t);
}

int64_t kern_grain = 16384;

void kern_for(int nthreads, int64_t n, int64_t unit, void (*fn)(void *, int64_t, int64_t), void *ctx) {
	if (n <= 0) return;
	int64_t most = unit < 1 ? n / kern_grain : unit >= kern_grain ? n : n / (kern_grain / unit);
	if (most > n) most = n;
	if (nthreads > most) nthreads = (int)most;
	if (nthreads <= 1) {
		fn(ctx, 0, n);
		return;
	}
	struct loop l = {fn, ctx, n, kern_team_parts(nthreads, most)};
	if (l.parts > n) l.parts = n;
	if (kern_team_loop(part, &l, l.parts)) return;
	pthread_once(&once, resolve);
	if (!gomp_parallel) {
		fn(ctx, 0, n);
		return;
	}
	gomp_parallel(body, &l, (unsigned)nthreads, 0);
}
