// A few functions of libpmix, with declarations of our own. Those that return int return a code of PMIx, 0 for success.
#ifndef GT_PMIX_H
#define GT_PMIX_H
#include <stddef.h>
#include <stdint.h>

typedef struct gt_pmix gt_pmix;

gt_pmix *gt_pmix_open(const char *path, char *err, size_t n);
int gt_pmix_init(gt_pmix *p);
int gt_pmix_put(gt_pmix *p, const char *key, const char *value);
int gt_pmix_commit(gt_pmix *p);
int gt_pmix_fence(gt_pmix *p);
int gt_pmix_get(gt_pmix *p, uint32_t rank, const char *key, char *out, size_t n);
int gt_pmix_finalize(gt_pmix *p);
const char *gt_pmix_explain(gt_pmix *p, int rc);

#endif
