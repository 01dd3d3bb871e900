// Element-wise reduction over several sources; see reduce.go.
#ifndef GT_REDUCE_H
#define GT_REDUCE_H
#include <stddef.h>
#include <stdint.h>

// op: 0 sum, 1 max, 2 min. t: the numbers of npu.DType.
void gt_reduce(int op, int t, size_t n, void *dst, const uintptr_t *mirror, int nmirror, const uintptr_t *src, int nsrc);
void gt_reduce2(int op, int t, size_t n, void *dst, const void *src);
const char *gt_reduce_isa(void);
#endif
