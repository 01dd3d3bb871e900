//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "fewrows.per_isa.h"
#include "kern.h"
// FEW_GROUP rows of the matrix are processed before anything is stored, FEW_SUMS sums at once, and FEW_PIECE bytes of a at a time.
enum { FEW_SUMS = 16, FEW_GROUP = 16, FEW_PIECE = 24 << 10 };
// How many rows of b are walked side by side with m rows of a.
#define FEW_BESIDE(m) ((m) <= 4 ? 4 : 2)
// Whether the rows of b that are walked side by side lie far apart, each the next of a stream of its own, and nothing is prefetched by software; otherwise
// they are neighbours. It is the processor's prefetchers that decide. Zen's follow several streams, but not four rows next to one another: measured on Zen 4
// with one row of a, neighbours read at 11 to 20 GB/s where streams read at 31 to 48, as fast as loops that only read; prefetching costs streams up to a fifth
// where the matrix is in a cache. Intel's follow neighbours, with prefetching across the ends of pages. Sums are the same bit by bit.
int kern_few_apart = -1;
static int few_apart(void) {
	if (kern_few_apart >= 0) return kern_few_apart;
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
	__builtin_cpu_init();
	return __builtin_cpu_is("amd") != 0;
#else
	return 0;
#endif
}
// How many bytes ahead neighbouring rows are prefetched that take the given number of bytes together: the rows after them, or those after those, so that memory
// answers in time. Measured on Intel (family 6, model 207): 2 KiB ahead read 30 MB in a cache at 23.7 GB/s, 4 to 8 KiB at 26; of long rows, where less than
// all of them lies beside lines that are in use already, 2 KiB read at 21 to 23 and as much as all rows at 25 to 26.
static inline int64_t few_ahead(int64_t rows) {
	enum { LEAST = 4096, MOST = 16384 };
	if (rows > MOST) return MOST / 2;
	return rows >= LEAST || rows <= 0 ? rows : (LEAST + rows - 1) / rows * rows;
}
static int64_t few_count(const kern_cmd *c) { return (c->n[2] + FEW_GROUP - 1) / FEW_GROUP; }
#define UNROLL_ALL _Pragma("GCC unroll 16")
#include "isa.h"

TABLE(fewrows);

typedef struct {
	const char *at;
	int64_t bytes;
} span;

static int overlap(span a, span b) { return a.at && b.at && a.at < b.at + b.bytes && b.at < a.at + a.bytes; }

// What a product touches: y and the workspace, which it writes, then what it reads.
enum { FEW_SPANS = 5, FEW_WRITTEN = 2 };
static void few_spans(const kern_cmd *c, span *s) {
	int64_t m = c->n[0], k = c->n[1], n = c->n[2], size = c->dt == KERN_BF16 ? 2 : 4;
	s[0] = (span){c->p[3], m * n * (c->flags & FEW_OUT_F32 ? 4 : size)};
	s[1] = (span){c->dt == KERN_BF16 ? c->ws : 0, m * k * 4};
	s[2] = (span){c->p[0], m * k * size};
	s[3] = (span){c->p[1], n * k * size};
	s[4] = (span){c->p[2], n * 4};
}

// Whether neither product touches what the other one writes. Both may have one workspace: they write the same to it.
static int few_independent(const kern_cmd *a, const kern_cmd *b) {
	span s[FEW_SPANS], t[FEW_SPANS];
	few_spans(a, s), few_spans(b, t);
	for (int i = 0; i < FEW_SPANS; i++)
		for (int j = 0; j < FEW_SPANS; j++)
			if ((i < FEW_WRITTEN || j < FEW_WRITTEN) && !(i == 1 && j == 1 && s[1].at == t[1].at) && overlap(s[i], t[j])) return 0;
	return 1;
}

enum { FEW_JOINED = 8 };

int kern_join(const void *commands, int n) {
	const kern_command *all = commands;
	kern_cmd *c = all[0].self;
	if (c->fn != kern_fewrows[KERN_BASE] && c->fn != kern_fewrows[KERN_V3] && c->fn != kern_fewrows[KERN_V4]) return 0;
	int count = 1;
	for (; count < n && count < FEW_JOINED; count++) {
		const kern_cmd *e = all[count].self;
		if (e->fn != c->fn || e->dt != c->dt || e->threads != c->threads || e->p[0] != c->p[0] || e->n[0] != c->n[0] || e->n[1] != c->n[1]) break;
		int apart = 1;
		for (int i = 0; i < count; i++) apart &= few_independent(all[i].self, e);
		if (!apart) break;
	}
	if (count == 1) return 0;
	for (int i = 0; i + 1 < count; i++) ((kern_cmd *)all[i].self)->next = all[i + 1].self;
	kern_run(c, c->threads);
	for (int i = 0; i + 1 < count; i++) ((kern_cmd *)all[i].self)->next = 0;
	return count;
}
