// op_ew.h: elementwise operators. A kernel computes rows in the class of the dtype in which its operands meet: f32, f64 or i64.
#ifndef FAKE_OP_EW_H
#define FAKE_OP_EW_H

#include "op.h"

#include <math.h>

enum { EW_IN = 4 };

typedef struct ew {
	void (*f)(float *o, float *const *in, int64_t n, const double *p);
	void (*d)(double *o, double *const *in, int64_t n, const double *p);
	void (*i)(int64_t *o, int64_t *const *in, int64_t n, const double *p);
} ew;

// ew_run computes out = k(in…, p…), the operands read in dtype, the result rounded to dtype, then to out's.
void ew_run(const ft *out, int nin, const ft *const *in, int dtype, const ew *k, const double *p);

// ck_castable refuses results that the dtype of out cannot take: fractions into integers, anything but bool into bool.
void ck_castable(ck *k, int dtype, const ft *out, const char *name);
// ck_broadcast finds the common shape of tensors and demands it of out. It returns the dtype in which they meet.
int ck_broadcast(ck *k, int n, const ft *const *in, const ft *out, const char *name);

// Kernels of one, two and three operands a, b, c and the numbers p0, p1. An expression per class; NONE where the check lets none through.
#define NONE 0
static inline float ew_float(double v) { return (float)v; }
static inline double ew_double(double v) { return v; }
static inline int64_t ew_int64_t(double v) { return v != v ? 0 : v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : (int64_t)v; }
#define EW_ROW(fn, type, n_in, expr) \
	static void fn(type *o, type *const *in, int64_t n, const double *p) { \
		const type p0 = ew_##type(p[0]), p1 = ew_##type(p[1]); \
		const type *A = in[0], *B = n_in > 1 ? in[1] : A, *C = n_in > 2 ? in[2] : A; \
		(void)p0, (void)p1, (void)B, (void)C; \
		for (int64_t k = 0; k < n; k++) { \
			const type a = A[k], b = B[k], c = C[k]; \
			(void)a, (void)b, (void)c; \
			o[k] = (type)(expr); \
		} \
	}
#define EW(name, n_in, fx, dx, ix) \
	EW_ROW(name##_f, float, n_in, fx) \
	EW_ROW(name##_d, double, n_in, dx) \
	EW_ROW(name##_i, int64_t, n_in, ix) \
	static const ew name##_k = {name##_f, name##_d, name##_i};

#endif
