// The C side of package kern: a command is a prepared kernel with all its arguments, executed by kern_run.
#ifndef KERN_H
#define KERN_H

#include "flags.h"
#include <stdint.h>

#define KERN_ARGS 16
#define KERN_ERR 160

typedef struct kern_cmd kern_cmd;
typedef int (*kern_fn)(kern_cmd *c, int nthreads);

// Element types.
enum { KERN_F32, KERN_BF16 };
// Orders of a 4-d tensor in memory, by how many channels of a pixel are adjacent: ROWS is all of them ([N H W C], and plain [N C]), PLANES is one, and any
// other number is the width of a block, which divides 16.
enum { KERN_ROWS, KERN_PLANES };
// Instruction sets: one build of every kernel for each. AVX-512 without BF16 conversion uses V3: kernels limited by memory run equally fast.
enum { KERN_BASE, KERN_V3, KERN_V4, KERN_ISAS };

struct kern_cmd {
	kern_fn fn;
	int32_t threads;    // 0: as many as OpenMP would use on the calling thread
	int32_t dt;         // element type of activations
	int32_t flags;      // kernel-specific
	int64_t n[12];      // sizes
	double f[6];        // constants
	void *p[KERN_ARGS]; // arguments
	void *ws;           // workspace
	int64_t *v;         // arrays of sizes, behind the struct
	void *stream;       // what kern_exec got
	kern_cmd *next;     // the next of those that run as one, see kern_join; null: it runs alone
	char err[KERN_ERR]; // why fn returned non-zero
};

// kern_run executes the command with nthreads threads (0: see threads) and returns 0, or non-zero with c->err set.
int kern_run(kern_cmd *c, int nthreads);

// kern_exec is kern_run(self, self->threads) with the signature of a generic command. The stream is for commands of others that a kernel runs.
int kern_exec(void *self, void *stream);

// kern_exec_others is the same, for kernels that run commands of others. Those may open parallel regions of their own, so a team (team.h) does not run them.
int kern_exec_others(void *self, void *stream);

// kern_join runs the first of n commands with the function kern_exec as one, and returns how many that were; 0: the first one cannot run with others. Those are
// products of one left factor, such as q, k and v of a token: one loop has more parts for a team than each of several, and one end. Numbers are the same.
typedef struct {
	int (*fn)(void *self, void *stream);
	void *self;
} kern_command;
int kern_join(const void *commands, int n); // an array of kern_command

// kern_find is the kernel of that name for the instruction set, or null.
kern_fn kern_find(const char *name, int isa);

// kern_isa is the best instruction set of this processor.
int kern_isa(void);

// kern_for splits 0…n-1 into contiguous ranges, one per thread, and waits; each of the n covers unit elements, and a thread that would get
// fewer than kern_grain is not worth waking. It uses the OpenMP team of the calling thread (libgomp's, found at run
// time, so that kernels share it with oneDNN); without libgomp the ranges run one after another.
extern int64_t kern_grain;
void kern_for(int nthreads, int64_t n, int64_t unit, void (*fn)(void *ctx, int64_t lo, int64_t hi), void *ctx);

// Which way fewrows walks the matrix, for tests: 1 in streams, 0 by neighbours, -1 as this processor prefers.
extern int kern_few_apart;

// The kernels, by instruction set.
typedef const kern_fn kern_table[KERN_ISAS];
#define KERN_LIST(X) \
	X(bn_fwd) X(bn_bwd) X(bn_infer) \
	X(attention) X(attention_bwd) X(attention_cached) X(cache_write) \
	X(relu) X(relu_bwd) X(add) X(map) X(convert) \
	X(sgd) X(adamw) X(sumsq) X(lars) X(lamb_moments) X(lamb) X(scale) X(ema) \
	X(softmax) X(softmax_bwd) X(cross_entropy) X(cross_entropy_bwd) X(soft_ce) X(soft_ce_bwd) X(topk) \
	X(one_hot) X(bce) X(bce_bwd) X(mse) X(mse_bwd) \
	X(gap) X(gap_bwd) X(dropout) X(reduce) X(copy) X(concat) X(fill) \
	X(embedding) X(embedding_bwd) X(rmsnorm) X(rmsnorm_bwd) X(rope) X(swiglu) X(swiglu_bwd) X(fewrows) \
	X(layernorm) X(layernorm_bwd) X(gelu) X(gelu_bwd) \
	X(lce_labels) X(lce_tile) X(lce_end) X(lce_loss) X(lce_scale) X(lce_dx) X(lce_hits) X(lce_prob) \
	X(wino_conv) X(wino_conv_bwd_weights) X(pack) X(pairs)

#define KERN_EXTERN(name) extern kern_table kern_##name;
KERN_LIST(KERN_EXTERN)
#undef KERN_EXTERN

// Records an error in the command, and returns 1 for the kernel to return.
int kern_fail(kern_cmd *c, const char *format, ...);

#endif
