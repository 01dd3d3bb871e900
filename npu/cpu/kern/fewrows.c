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
#define UNROLL_ALL _Pragma("GCC unroll 16")
#include "isa.h"

TABLE(fewrows);
