// fake.h: what an operator of the fake sees. An operator is one constant per name,
//
//	FOP(Add) = {.check = add_check, .run = add_run};
//
// in any file of this folder. The exports aclnnAdd and aclnnAddGetWorkspaceSize are generated from the table of signatures; they find the
// constant by its name. An operator without a constant answers 561003.
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_DIMS = 8, FAKE_ARGS = 48 };

// Numbers of aclDataType and of aclFormat.
enum { DT_F32 = 0, DT_F16 = 1, DT_I8 = 2, DT_I32 = 3, DT_U8 = 4, DT_I16 = 6, DT_U16 = 7, DT_U32 = 8, DT_I64 = 9, DT_U64 = 10, DT_F64 = 11, DT_BOOL = 12,
	DT_BF16 = 27 };
enum { FMT_NCHW = 0, FMT_NHWC = 1, FMT_ND = 2, FMT_NCDHW = 30, FMT_NCL = 47 };

// Results of a check.
enum { ACLNN_OK = 0, ACLNN_NULLPTR = 161001, ACLNN_PARAM = 161002, ACLNN_INNER = 561000, ACLNN_TILING = 561002, ACLNN_NO_KERNEL = 561003 };

// Chips.
enum { SOC_910 = 0, SOC_A2 = 1, SOC_A3 = 2, SOC_950 = 3 };

// ft is an aclTensor as it was when the first phase ran. Strides and offset count elements. Every element lies inside the storage, the storage inside
// one block of device memory: this is checked before run. In check, base is the device's address, which the host cannot read: compare it, nothing
// else. In run, base is memory to read and write; tensors that overlap on the device overlap here too. Do not forget offset.
typedef struct ft {
	int64_t dims[FAKE_DIMS], strides[FAKE_DIMS];
	int nd;
	int64_t offset;
	int dtype, format;
	int64_t storage; // elements
	char *base;
} ft;

typedef struct fscalar {
	int dtype;
	double f; // its value; exact for all but large 64-bit integers
	int64_t i;
} fscalar;

// farray is an IA, FA or BA: one of i, f, b is set.
typedef struct farray {
	int64_t n;
	const int64_t *i;
	const float *f;
	const bool *b;
} farray;

typedef struct flist { // TL, TLo
	int64_t n;
	ft **t;
} flist;

typedef struct fslist { // SL
	int64_t n;
	const fscalar **s;
} fslist;

// farg is an argument, by its code in the table of signatures: T, To: t (NULL is allowed: the check decides); S: s; IA, FA, BA: a; TL, TLo: l; SL: sl;
// str: str; f32, f64: f; all others: i. Handles that are no live objects are caught before the check.
typedef union farg {
	ft *t;
	const fscalar *s;
	const farray *a;
	const flist *l;
	const fslist *sl;
	const char *str;
	int64_t i;
	double f;
} farg;

// fcall is one call of an operator.
typedef struct fcall {
	const char *name; // "Add"
	const struct fop *op;
	int n;
	farg a[FAKE_ARGS];
	bool deterministic; // the switch, as it was in the first phase
	int soc;            // SOC_…
	int cann;           // 81, 90
	uint64_t seed;      // other for each run: for the order of sums of operators that are not deterministic
	char *ws;           // in run: the workspace, aligned to 512 bytes; NULL if the operator wants none
	int64_t ws_bytes;   // what workspace returned
} fcall;

// fop is an operator.
typedef struct fop {
	// check runs in the first phase, on the caller's thread: it refuses what the real operator refuses, with a code and a text that names the argument.
	int (*check)(const fcall *, char *err, size_t n);
	// run runs on the stream's thread. It returns a runtime code, 0 or for example 507015, for what only the values show.
	int (*run)(const fcall *);
	// workspace says how many bytes run needs; NULL: none. The fake adds a little of its own for some operators, so that callers meet that path.
	int64_t (*workspace)(const fcall *);
	bool not_repeatable;   // aclSetAclOpExecutorRepeatable answers 561000
	bool nondeterministic; // sums in an order that seed decides, unless deterministic
} fop;

#define FOP(name) const fop fop_##name

// Used by operators.
int64_t ft_numel(const ft *t);
bool ft_contiguous(const ft *t);            // strides of dims of 1 do not matter
bool ft_same_shape(const ft *a, const ft *b);
int64_t ft_at(const ft *t, int64_t flat);   // element index, in base, of the flat index (row major) into the view
int64_t dtype_size(int dtype);              // 0: unknown
const char *dtype_name(int dtype);
double value_load(const char *base, int dtype, int64_t i);
void value_store(char *base, int dtype, int64_t i, double v); // rounds to nearest even; integers are cut off
float half_to_float(uint16_t h);
uint16_t float_to_half(float f);
float bf16_to_float(uint16_t h);
uint16_t float_to_bf16(float f);
uint64_t fake_random(uint64_t *state);      // splitmix64

// Indices out of range that operators met. The real result is undefined then.
extern _Atomic int64_t fake_out_of_range;

// fail writes the text of a check and returns the code: return fail(ACLNN_PARAM, err, n, "self: dtype %s", …).
int fail(int code, char *err, size_t n, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
