//go:build cgo && linux && (amd64 || arm64)

// A team: threads that stay together over a long run of small kernels, such as those of one generated token. kern_for then offers them the parts of its loop,
// which costs a fraction of a parallel region. Parts are claimed one by one, and the caller claims too: it waits only for parts that another thread has begun.
// So a thread that the system does not run, since other programs want its processor, delays nothing, where a region waits for all its threads.

#define _GNU_SOURCE
#include "team.h"
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE __attribute__((aligned(64)))
// How long a thread that may spin does so before it sleeps: longer than what passes between two tokens, shorter than what others would notice.
enum { SPIN_NS = 100000 };

typedef struct {
	LINE uint32_t asleep; // a futex: 1 while the thread sleeps, or is about to
	kern_team *team;
	pthread_t thread;
} member;

struct kern_team {
	LINE uint64_t ticket; // number of the loop << 32 | its parts << 16 | those that are claimed
	LINE uint32_t done;   // parts that ended
	LINE uint32_t asleep; // as of a member, of the caller
	LINE uint32_t over;
	int spin, wanted, started;
	void (*part)(void *loop, int64_t part);
	void *loop;
	member members[];
};

static __thread kern_team *mine; // of the thread that runs kernels, outside of loops
static __thread int within;      // a part of a loop

static inline void relax(void) {
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield" ::: "memory");
#endif
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void futex(uint32_t *at, int op, uint32_t v) { syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, v, 0, 0, 0); }

// Wakes the thread of that flag if it sleeps. Whoever waits sets the flag before the last look at what it waits for, and whoever changes that looks at the flag
// afterwards, so that one of them sees the other.
static void wake(uint32_t *asleep) {
	if (__atomic_load_n(asleep, __ATOMIC_SEQ_CST) && __atomic_exchange_n(asleep, 0, __ATOMIC_SEQ_CST)) futex(asleep, FUTEX_WAKE, 1);
}

static void await(int spin, uint32_t *asleep, int (*ready)(kern_team *, uint64_t), kern_team *t, uint64_t seen) {
	if (spin) {
		int64_t end = 0;
		for (int i = 1;; i++) {
			if (ready(t, seen)) return;
			relax();
			if (i % 64) continue;
			int64_t at = now();
			if (!end)
				end = at + SPIN_NS;
			else if (at >= end)
				break;
		}
	}
	while (!ready(t, seen)) {
		__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
		if (!ready(t, seen)) futex(asleep, FUTEX_WAIT, 1);
	}
	__atomic_store_n(asleep, 0, __ATOMIC_SEQ_CST);
}

static int another(kern_team *t, uint64_t seen) {
	return __atomic_load_n(&t->ticket, __ATOMIC_SEQ_CST) != seen || __atomic_load_n(&t->over, __ATOMIC_SEQ_CST);
}
static int all_done(kern_team *t, uint64_t parts) { return __atomic_load_n(&t->done, __ATOMIC_SEQ_CST) == parts; }

// Claims and runs parts until none is left, and returns the last ticket seen. Where a part was claimed, its loop cannot end, so what describes it is valid.
static uint64_t help(kern_team *t, int caller) {
	uint64_t w = __atomic_load_n(&t->ticket, __ATOMIC_SEQ_CST);
	for (;;) {
		int64_t parts = w >> 16 & 0xffff, part = w & 0xffff;
		if (part >= parts) return w;
		if (!__atomic_compare_exchange_n(&t->ticket, &w, w + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
		t->part(t->loop, part);
		uint32_t done = __atomic_add_fetch(&t->done, 1, __ATOMIC_SEQ_CST);
		if (!caller && done == parts) wake(&t->asleep);
		w = __atomic_load_n(&t->ticket, __ATOMIC_SEQ_CST);
	}
}

static void *work(void *arg) {
	member *m = arg;
	within = 1;
	for (;;) {
		uint64_t seen = help(m->team, 0);
		if (__atomic_load_n(&m->team->over, __ATOMIC_SEQ_CST)) return 0;
		await(m->team->spin, &m->asleep, another, m->team, seen);
	}
}

int kern_team_loop(void (*part)(void *, int64_t), void *loop, int64_t parts) {
	kern_team *t = mine;
	if (within) {
		for (int64_t i = 0; i < parts; i++) part(loop, i);
		return 1;
	}
	if (!t || parts > 0xffff) return 0;
	within = 1;
	t->part = part, t->loop = loop;
	__atomic_store_n(&t->done, 0, __ATOMIC_SEQ_CST);
	uint64_t number = (__atomic_load_n(&t->ticket, __ATOMIC_SEQ_CST) >> 32) + 1;
	__atomic_store_n(&t->ticket, number << 32 | (uint64_t)parts << 16, __ATOMIC_SEQ_CST);
	for (int i = 0; i < t->started; i++) wake(&t->members[i].asleep);
	help(t, 1);
	await(t->spin, &t->asleep, all_done, t, (uint64_t)parts);
	within = 0;
	return 1;
}

int64_t kern_team_parts(int64_t parts, int64_t most) {
	if (!mine) return parts;
	int64_t finer = most / (16 * parts);
	return parts * (finer < 1 ? 1 : finer > 4 ? 4 : finer);
}

// Starts the threads. They block all signals, which are for Go's threads, and are bound as the caller is. If some cannot be started, the others do.
static void start(kern_team *t) {
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (; t->started < t->wanted; t->started++) {
		member *m = &t->members[t->started];
		m->team = t;
		if (pthread_create(&m->thread, 0, work, m)) break;
	}
	pthread_sigmask(SIG_SETMASK, &old, 0);
	t->wanted = t->started;
}

kern_team *kern_team_new(int threads, int spin) {
	size_t bytes = sizeof(kern_team) + (size_t)(threads - 1) * sizeof(member);
	kern_team *t = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!t) return 0;
	memset(t, 0, bytes);
	t->spin = spin, t->wanted = threads - 1;
	return t;
}

void kern_team_start(kern_team *t) {
	if (t->started < t->wanted) start(t);
}

void kern_team_use(void *team) {
	kern_team *t = team;
	mine = t && t->started ? t : 0; // without threads of its own OpenMP serves better
}

void kern_team_free(kern_team *t) {
	if (!t) return;
	__atomic_store_n(&t->over, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < t->started; i++) wake(&t->members[i].asleep);
	for (int i = 0; i < t->started; i++) pthread_join(t->members[i].thread, 0);
	free(t);
}
