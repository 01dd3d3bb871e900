// Declarations of the parts of oneDNN that gotrain calls, for both C APIs. Handles are void*: a memory descriptor is
// a pointer in both (2.x: to a struct of 696 bytes, allocated with room to spare; 3.x: an opaque handle).
#ifndef GT_DNNL_LIB_H
#define GT_DNNL_LIB_H
#include <stddef.h>
#include <stdint.h>

#define GT_DIMS 12
typedef int64_t gt_dims[GT_DIMS];
typedef struct { int arg; void *memory; } gt_arg; // dnnl_exec_arg_t

// Sizes of the by-value structs of 2.x, with room for fields that a minor version may append.
#define GT_MD_BYTES 1024
#define GT_OP_BYTES 16384

typedef struct gt_lib {
    void *handle;
    int major, minor, patch;
    char hash[64];
    void *engine;
    int tag_16c, tag_8c; // numbers of the format tags aBcd16b and aBcd8b in this version

    // the same in both versions
    int (*engine_create)(void **, int, size_t);
    int (*stream_create)(void **, void *, unsigned);
    int (*stream_destroy)(void *);
    int (*stream_wait)(void *);
    int (*attr_create)(void **);
    int (*attr_destroy)(void *);
    int (*attr_set_scratchpad_mode)(void *, int);
    int (*attr_set_post_ops)(void *, const void *);
    int (*post_ops_create)(void **);
    int (*post_ops_destroy)(void *);
    int (*pd_query)(const void *, int, int, void *);
    const void *(*pd_query_md)(const void *, int, int);
    int (*pd_destroy)(void *);
    int (*primitive_create)(void **, const void *);
    int (*primitive_destroy)(void *);
    int (*primitive_execute)(const void *, void *, int, const gt_arg *);
    int (*memory_create)(void **, const void *, void *, void *);
    int (*memory_destroy)(void *);
    int (*md_equal)(const void *, const void *);
    size_t (*md_size)(const void *);
    int (*reorder_pd)(void **, const void *, void *, const void *, void *, const void *);
    int (*isa)(void);
    int (*set_max_isa)(int);
    const char *(*isa_name)(int);      // optional
    const char *(*tag_name)(int);
    int (*set_cache)(int);             // optional

    // those that differ are untyped here, and cast where they are called
    void *md_strides, *md_tag, *append_eltwise, *append_sum;
    void *md_destroy, *md_clone, *md_query, *md_permute;
    void *pd_create, *iter_create, *iter_next, *iter_fetch, *iter_destroy, *next_impl;
    void *conv_fwd, *conv_bwd_data, *conv_bwd_weights;
    void *pool_fwd, *pool_bwd, *softmax_fwd, *softmax_bwd, *matmul;

    // libgomp, loaded by the library
    void (*omp_set_num_threads)(int);  // NULL when the library is built without OpenMP
    int (*omp_get_max_threads)(void);
} gt_lib;

// lib.c
gt_lib *gt_open(const char *path, char *err, size_t n);
int gt_setenv(const char *key, const char *value);
void gt_threads(gt_lib *l, int n);
const char *gt_tag_name(gt_lib *l, int tag); // NULL: unknown tag
int gt_isa(gt_lib *l);
const char *gt_isa_name(gt_lib *l, int isa);
int gt_stream(gt_lib *l, void **s);
void gt_stream_free(gt_lib *l, void *s);

// md.c; a descriptor made here is freed by gt_md_free
typedef struct {
    int ndims, dtype, blocked, nblocks;
    gt_dims dims, padded, strides, blocks, idxs;
} gt_md_info;
void *gt_md_strides(gt_lib *l, int dtype, int ndims, const int64_t *dims, const int64_t *strides, int *status);
void *gt_md_tag(gt_lib *l, int dtype, int ndims, const int64_t *dims, int tag, int *status);
void *gt_md_clone(gt_lib *l, const void *md);
void *gt_md_permute(gt_lib *l, const void *md, const int *perm, int *status);
void gt_md_free(gt_lib *l, void *md);
int gt_md_get(gt_lib *l, const void *md, gt_md_info *out);
int gt_md_equal(gt_lib *l, const void *a, const void *b);
size_t gt_md_size(gt_lib *l, const void *md);

// pd.c; kinds of gt_spec
enum { GT_CONV_FWD, GT_CONV_BWD_DATA, GT_CONV_BWD_WEIGHTS, GT_POOL_FWD, GT_POOL_BWD, GT_SOFTMAX_FWD, GT_SOFTMAX_BWD, GT_MATMUL, GT_REORDER };
typedef struct {
    int kind, threads, alg, prop, relu, axis;
    int sum;  // add to the values in dst
    int skip; // implementations to skip
    const void *src, *weights, *bias, *dst; // named as in the forward pass; for gradients, those of the gradient
    gt_dims strides, dilates, kernel, pad_l, pad_r;
    const void *hint;
} gt_spec;
int gt_pd(gt_lib *l, const gt_spec *s, void **pd);
const char *gt_pd_impl(gt_lib *l, const void *pd);
void *gt_pd_md(gt_lib *l, const void *pd, int what, int index);
size_t gt_pd_scratch(gt_lib *l, const void *pd);
void gt_pd_free(gt_lib *l, void *pd);
int gt_prim(gt_lib *l, const void *pd, int threads, void **prim);
void gt_prim_free(gt_lib *l, void *prim);

// exec.c
typedef struct gt_exec {
    gt_lib *lib;
    const void *prim;
    int nargs;
    gt_arg args[];
} gt_exec;
gt_exec *gt_exec_new(gt_lib *l, const void *prim, int nargs, const int *ids, void *const *mds, void *const *ptrs, int *status);
int gt_exec_run(void *exec, void *stream);
void *gt_exec_run_address(void);
void gt_exec_free(gt_exec *e);
#endif
