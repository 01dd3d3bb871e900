// Element-wise reduction over several sources; see reduce.go.
#ifndef GT_REDUCE_H
#define GT_REDUCE_H
#include <stddef.h>
#include <stdint.h>

// op: 0 sum, 1 max, 2 min. t: the numbers of npu.DType.
void gt_reduce(int op, int t, size_t n, void *dst, const uintptr_t *mirror, int nmirror, const uintptr_t *src, int nsrc);
void gt_reduce2(int op, int t, size_t n, void *dst, const void *src);
const char *gt_reduce_isa(void);
// Uses at most an instruction set (0 sse2, 1 avx2, 2 avx512); returns the one in use.
int gt_reduce_limit(int isa);
void gt_codec_use(int isa);

// Blocks with a scale; see quantise.go. All return 1 if everything was finite. Without feedback old is null.
int gt_quantise(size_t n, size_t block, int8_t *q, float *scale, const float *x, const int16_t *old, const float *oldscale, int16_t *neu,
	float *newscale, float unit);
int gt_dequantise(size_t n, size_t block, float *dst, const int8_t *q, const float *scale);
// Parts of all ranks lie a stride apart; that of rank own is in dst, as float.
void gt_sum_quantised(size_t n, size_t block, float *dst, const int8_t *q, const float *scale, size_t stride, int ranks, int own);

// 16-bit floats; bf is 1 for bfloat16.
void gt_narrow(int bf, size_t n, uint16_t *dst, const float *src, float by);
int gt_widen(int bf, size_t n, float *dst, const uint16_t *src, float by);
// The sums of elements from … n-1 of several sources, rounded once; for reduce.c.
void gt_add_halves(int bf, size_t from, size_t n, void *dst, void *const *src, int nsrc);
#endif
