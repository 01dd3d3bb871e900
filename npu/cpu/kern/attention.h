// Attention: the part that does not depend on the instruction set.
//
// Note [attention]: a block of AT_M queries of one head is processed at once, AT_N keys at a time. The scores are stored transposed, S'[key][query], so that
// a vector holds one key's scores for several queries: maximum, exponential and sum then go down columns, without sums across lanes, and only the block of
// queries has to be transposed: S' = K·Q' reads rows of K, and O = P·V finds P' packed as a matrix product needs it. Keys and values are packed once per
// key head (with zeros after D and after T). Nothing of size S×T exists. The running maximum and sum are as in arXiv 2205.14135; scores are in units of
// log 2, because 2^x is cheaper than e^x.
//
// Note [units]: forward, every block of queries is computed in the same way by any thread. Backward, a unit is a key head, or part of its queries if there
// are few key heads, with separate sums of dk and dv; the parts are merged in order. The division depends on shapes only, so results do not depend on the
// number of threads.
#ifndef KERN_ATTENTION_H
#define KERN_ATTENTION_H
#include "kern.h"

enum { AT_M = 64, AT_N = 128 };
enum { AT_CAUSAL = 1, AT_SEG = 2, AT_BWD = 4, AT_TILES = 8, AT_MASKED = 16 };

// Sizes of a command: n[0…5] are B S T H G D, n[6] the maximum number of workers that the workspace has room for, n[7] and n[8]
// the steps of the mask from batch to batch and from head to head. f[0] is the scale. p[10] are the keys, p[11] is the mask, or null.
typedef struct at_job at_job;
struct at_job {
	kern_cmd *cmd;
	int64_t b, s, t, h, g, d;
	int64_t dp, tp;     // padded D and T
	int64_t per;        // query heads per key head
	int64_t off;        // causal: query s sees keys up to s + off
	int64_t blocks;     // blocks of queries per head
	int64_t head;       // keys that the blocks of a head see in total: its cost
	int64_t parts;      // backward: units per key head
	int64_t slot, sums; // bytes of a worker's scratch memory, and of a unit's sums
	int64_t workers;
	int causal;
	float scale;
	const int32_t *seg; // or null
	const int32_t *keys, *mask; // or null; with either, AT_MASKED
	// Works on blocks lo…hi-1 of a key head: block i is number i % blocks of the key head's query head i / blocks.
	void (*fwd)(const at_job *j, char *scratch, int64_t key_head, int64_t lo, int64_t hi);
	void (*bwd)(const at_job *j, char *scratch, float *sums, int64_t key_head, int64_t lo, int64_t hi);
	// Adds the parts' sums of dk and dv of a key head, and writes the totals.
	void (*end)(const at_job *j, float *sums, int64_t key_head);
};

at_job at_job_of(kern_cmd *c);
int at_run(at_job *j, int nthreads);
int64_t at_units(const kern_cmd *c);
int64_t at_workspace(const kern_cmd *c);

static inline int64_t at_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t at_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t at_up(int64_t a, int64_t to) { return (a + to - 1) / to * to; }
// The number of keys that a block of queries from q0 on sees.
static inline int64_t at_limit(const at_job *j, int64_t q0) { return j->causal ? at_min(j->t, at_min(q0 + AT_M, j->s) + j->off) : j->t; }

// at_apart reports whether no query of the block from q0 on shares a segment with any of the keys t0…t0+n-1, or all of these are hidden.
int at_apart(const at_job *j, int64_t b, int64_t q0, int64_t t0, int64_t n);

// Positions of a block of queries in [B S H D] and in [B H S].
typedef struct {
	int64_t b, h, q0, n, at, stride, row;
} at_block;
static inline at_block at_block_of(const at_job *j, int64_t key_head, int64_t i) {
	at_block k = {.b = key_head / j->g, .h = key_head % j->g * j->per + i / j->blocks, .q0 = i % j->blocks * AT_M};
	k.n = at_min(AT_M, j->s - k.q0);
	k.stride = j->h * j->d;
	k.at = (k.b * j->s + k.q0) * k.stride + k.h * j->d;
	k.row = (k.b * j->h + k.h) * j->s + k.q0;
	return k;
}
// Positions of the keys of a key head in [B T G D].
static inline int64_t at_keys(const at_job *j, int64_t key_head) { return (key_head / j->g * j->t * j->g + key_head % j->g) * j->d; }

// Allocates scratch memory in pieces.
static inline void *at_take(char **p, int64_t bytes) {
	void *at = *p;
	*p += at_up(bytes, 64);
	return at;
}

// Note [ahead]: a head's rows are short and far apart, so hardware prefetching misses them. The rows that the next block reads and this one writes, and a
// share of the next key head's keys and values, are therefore prefetched, a few rows per call of at_ask. This saves a quarter of the time at S = 256.
typedef struct {
	struct {
		char *at;
		int64_t stride, rows;
		int write;
	} list[8];
	int n, now;
	int64_t row, bytes, share;
} at_ahead;

// Fills the prefetch list for block i of lo…hi-1 of a key head, to be worked off in the given number of calls.
void at_plan(at_ahead *a, const at_job *j, int64_t size, int64_t key_head, int64_t i, int64_t lo, int64_t hi, int64_t calls);

static inline void at_ask(at_ahead *a) {
	for (int64_t n = a->share; n > 0 && a->now < a->n; n--) {
		char *p = a->list[a->now].at + a->row * a->list[a->now].stride;
		for (int64_t x = 0; x < a->bytes; x += 64) {
#ifdef __x86_64__
			if (a->list[a->now].write) {
				__asm__ volatile("prefetchw %0" ::"m"(p[x]));
				continue;
			}
#endif
			__builtin_prefetch(p + x, 0, 2);
		}
		if (++a->row >= a->list[a->now].rows) a->now++, a->row = 0;
	}
}

// With AMX, if the compiler supports it.
int kern_amx(void);
int64_t at_tiles_slot(const at_job *j);
void at_tiles(at_job *j);
#endif
