// op.h: what the operators of the fake share: checks, loops over strided tensors, and packed copies for the kernels that want plain memory.
#ifndef FAKE_OP_H
#define FAKE_OP_H

#include "fake.h"

#include <stdlib.h>
#include <string.h>

// Sets of dtypes.
#define D(x) (1u << DT_##x)
#define D_HALF (D(F16) | D(BF16))
#define D_FLOAT (D(F32) | D_HALF)
#define D_FLOAT64 (D_FLOAT | D(F64))
#define D_INT (D(I8) | D(U8) | D(I16) | D(I32) | D(I64))
#define D_MOST (D_FLOAT64 | D_INT | D(BOOL))
#define D_INDEX (D(I32) | D(I64))
#define D_MASK (D(BOOL) | D(U8))

// Sets of chips.
#define SOC(x) (1u << SOC_##x)
#define SOC_TRAIN (SOC(A2) | SOC(A3) | SOC(950))

static inline bool in_set(uint32_t set, int x) { return x >= 0 && x < 32 && (set >> x & 1); }

// ck is a running check: the first failure stays, the calls behind it do nothing. A pointer that a failed call returns must not be read: test rc first.
typedef struct ck {
	const fcall *c;
	char *err;
	size_t n;
	int rc;
} ck;

#define CK(k) ck k = {c, err, n, 0}

int ck_fail(ck *k, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ck_soc(ck *k, uint32_t socs);                                            // the chip has no kernel otherwise
ft *ck_t(ck *k, int i, const char *name, uint32_t dtypes);                    // a tensor that must be there
ft *ck_opt(ck *k, int i, const char *name, uint32_t dtypes);                  // a tensor or NULL
const fscalar *ck_s(ck *k, int i, const char *name);                          // a scalar that must be there
const farray *ck_array(ck *k, int i, const char *name, int64_t lo, int64_t hi); // an array of lo to hi numbers
const flist *ck_list(ck *k, int i, const char *name, uint32_t dtypes);        // a list without gaps, not empty
void ck_dtype(ck *k, const ft *t, const char *name, int dtype);               // exactly this dtype
void ck_alike(ck *k, const ft *a, const char *an, const ft *b, const char *bn); // b has a's dtype
void ck_rank(ck *k, const ft *t, const char *name, int lo, int hi);
void ck_shape(ck *k, const ft *t, const char *name, int nd, const int64_t *dims);
void ck_same(ck *k, const ft *a, const char *an, const ft *b, const char *bn); // b has a's shape
void ck_image(ck *k, const ft *t, const char *name);                          // rank 4 with the format NCHW (rank 3: NCL)
void ck_contiguous(ck *k, const ft *t, const char *name);
void ck_between(ck *k, const char *name, int64_t v, int64_t lo, int64_t hi);
int ck_dim(ck *k, const ft *t, const char *name, int64_t dim);                // the axis, counted from the front
void ck_cube(ck *k, const ft *t, int64_t type);                               // cubeMathType for operands like t

// broadcast finds the common shape of two; false if there is none.
bool broadcast(const int64_t *a, int an, const int64_t *b, int bn, int64_t *to, int *n);
int promote(int a, int b);         // the dtype in which two dtypes meet
int promote_scalar(int t, int s);  // a tensor of t with a scalar of s
static inline bool is_half(int dt) { return dt == DT_F16 || dt == DT_BF16; }
static inline bool is_float(int dt) { return in_set(D_FLOAT64, dt); }

// loop walks tensors of one shape (or that broadcast to it) row by row, at most LOOP_CHUNK elements at a time.
enum { LOOP_CHUNK = 1024, LOOP_TENSORS = 6 };
typedef struct loop {
	int nd, nt;
	int64_t dims[FAKE_DIMS];
	int64_t st[LOOP_TENSORS][FAKE_DIMS]; // elements
	char *p[LOOP_TENSORS];
	int64_t size[LOOP_TENSORS];
} loop;
typedef void (*loop_row)(void *ctx, char *const *p, const int64_t *st, int64_t n);
void loop_open(loop *l, const int64_t *dims, int nd);
void loop_add(loop *l, const ft *t);
void loop_run(loop *l, loop_row row, void *ctx);

// Rows of a tensor from and to plain arrays. Stores round once, to nearest even.
void load_f(float *to, const char *p, int dtype, int64_t st, int64_t n);
void load_d(double *to, const char *p, int dtype, int64_t st, int64_t n);
void load_i(int64_t *to, const char *p, int dtype, int64_t st, int64_t n);
void store_f(char *p, int dtype, int64_t st, int64_t n, const float *v);
void store_d(char *p, int dtype, int64_t st, int64_t n, const double *v);
void store_i(char *p, int dtype, int64_t st, int64_t n, const int64_t *v);
void round_f(float *v, int64_t n, int dtype); // to the values of a 16-bit dtype and back

// Whole tensors from and to plain row-major memory. pack_* allocates; free() what it returns.
float *pack_f(const ft *t);
double *pack_d(const ft *t);
int64_t *pack_i(const ft *t);
char *pack_raw(const ft *t); // elements as they are
void unpack_f(const ft *t, const float *v);
void unpack_d(const ft *t, const double *v);
void unpack_i(const ft *t, const int64_t *v);
void unpack_raw(const ft *t, const char *v);
void *room(int64_t count, int64_t size); // calloc that never fails

// Copies with conversion and broadcasting, and fills.
void copy_into(const ft *to, const ft *from);
void fill_with(const ft *to, double v);

// lines makes a view of t whose last dims are the given axes; outer and inner count what stays and what goes. result is the shape without them, or with 1.
typedef struct lines {
	ft view;
	int64_t outer, inner;
	int nd;
	int64_t dims[FAKE_DIMS];
} lines;
lines lines_of(const ft *t, const int64_t *axes, int64_t n, bool keep);

// sum_parts adds partial sums: in f64 and in order, or, if the operator's order is open, in f32 and in an order that seed and salt decide.
double sum_parts(const fcall *c, uint64_t salt, const double *part, int64_t n);
bool open_order(const fcall *c);                            // the operator sums in an order of its own and the switch is off
void shuffle(uint64_t *state, int64_t *v, int64_t n);
int64_t ws_of(const ft *t);                                 // a believable workspace for an operator with this result

// gemm: C[m n] = beta·C + A[m k]·B[k n], all f32, row and column strides of A and B in elements, C with rows of ldc.
void gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t ra, int64_t ca, const float *b, int64_t rb, int64_t cb, float beta, float *c, int64_t ldc);
void cube_round(float *v, int64_t n, int dtype, int64_t cube); // what cubeMathType makes of f32 operands

// Indices out of range leave the real result undefined. The fake writes poison and counts them in fake_out_of_range.
#define POISON (-6.0e4)

#endif
