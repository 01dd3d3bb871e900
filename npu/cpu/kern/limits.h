// What bounds kernels: how fast loops run that only read, copy, add or multiply.
#ifndef KERN_LIMITS_H
#define KERN_LIMITS_H
#include "kern.h"

// What a loop does: reads a, copies b to a, adds b to a; multiply-adds of float32, or of bfloat16 with float32 sums, in registers
// of vectors or of AMX.
enum { LIMIT_NONE, LIMIT_READ, LIMIT_COPY, LIMIT_ADD, LIMIT_FMA, LIMIT_DOT, LIMIT_TILES };

// How often a loop runs over its memory, or how many multiply-adds it does. x and y are factor and summand.
typedef struct {
	char *a, *b;
	int64_t rounds;
	float x, y;
} limit_job;

typedef struct {
	int what;
	void (*fn)(void *job, int64_t lo, int64_t hi);
	int64_t flop; // of a round, for loops of arithmetic
} limit_loop;

// limit_best runs every loop of a kind on nthreads threads for a time (seconds each), over `lines` lines of 64 bytes from a and, unless it only reads, as
// many from b. It returns the best rate of any pass: bytes that were read or written, or operations, a second; 0 without such a loop. LIMIT_WIDE, in place
// of an instruction set, has 512-bit multiply-adds.
enum { LIMIT_WIDE = KERN_ISAS };
double limit_best(int what, int isa, void *a, void *b, int64_t lines, int nthreads, double seconds);

// limit_compare measures multiply-adds of float32 and of bfloat16 in turn, in registers of the calling thread, and keeps the best of `turns` turns of each:
// operations a second, 0 without such a loop. A turn takes some 20 to 100 microseconds.
void limit_compare(int isa, int turns, double *f32, double *bf16);

// limit_region is the shortest time of a parallel region that does nothing, in seconds.
double limit_region(int nthreads);

// limit_wide says whether the processor has 512-bit multiply-adds.
int limit_wide(void);

// limit_tiles is the loop of AMX; its fn is null where the processor lacks that.
limit_loop limit_tiles(void);
#endif
