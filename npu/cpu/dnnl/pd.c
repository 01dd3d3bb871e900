//go:build cgo && linux

#include "lib.h"
#include <stdlib.h>
#include <string.h>

typedef const int64_t *dims_t;

static int append(gt_lib *l, const gt_spec *spec, void *po) {
    int v2 = l->major == 2, s = 0;
    if (spec->sum) s = v2 ? ((int (*)(void *, float))l->append_sum)(po, 1) : ((int (*)(void *, float, int32_t, int))l->append_sum)(po, 1, 0,
        0 /* dst's type */);
    if (!s && spec->relu)
        s = v2 ? ((int (*)(void *, float, int, float, float))l->append_eltwise)(po, 1, 0x1f, 0, 0) : ((int (*)(void *, int, float,
        	float))l->append_eltwise)(po, 0x20, 0, 0);
    return s;
}

// attr with the caller's scratchpad and, if requested, operations on the result: adding the previous values, a ReLU
static int attr_new(gt_lib *l, const gt_spec *spec, void **attr) {
    int s = l->attr_create(attr);
    if (s) return s;
    s = l->attr_set_scratchpad_mode(*attr, 1 /* user */);
    if (!s && (spec->relu || spec->sum)) {
        void *po = NULL;
        s = l->post_ops_create(&po);
        if (!s) {
            s = append(l, spec, po);
            if (!s) s = l->attr_set_post_ops(*attr, po);
            l->post_ops_destroy(po);
        }
    }
    if (s) l->attr_destroy(*attr);
    return s;
}

// create2 creates the primitive descriptor of an operation descriptor, skipping the first implementations.
static int create2(gt_lib *l, const void *op, const void *attr, const void *hint, int skip, void **pd) {
    typedef int (*create)(void **, const void *, const void *, void *, const void *);
    if (!skip) return ((create)l->pd_create)(pd, op, attr, l->engine, hint);
    void *it = NULL;
    int st = ((create)l->iter_create)(&it, op, attr, l->engine, hint);
    while (!st && skip--) st = ((int (*)(void *))l->iter_next)(it);
    if (!st && !(*pd = ((void *(*)(const void *))l->iter_fetch)(it))) st = 3;
    if (it) ((int (*)(void *))l->iter_destroy)(it);
    return st;
}

// 2.x: fill an operation descriptor, then create a primitive descriptor.
static int pd2(gt_lib *l, const gt_spec *s, const void *attr, void **pd) {
    void *op = calloc(1, GT_OP_BYTES);
    int st = 5;
    typedef int (*convf)(void *, int, int, const void *, const void *, const void *, const void *, dims_t, dims_t, dims_t, dims_t);
    typedef int (*convd)(void *, int, const void *, const void *, const void *, dims_t, dims_t, dims_t, dims_t);
    typedef int (*convw)(void *, int, const void *, const void *, const void *, const void *, dims_t, dims_t, dims_t, dims_t);
    typedef int (*poolf)(void *, int, int, const void *, const void *, dims_t, dims_t, dims_t, dims_t, dims_t);
    typedef int (*poolb)(void *, int, const void *, const void *, dims_t, dims_t, dims_t, dims_t, dims_t);
    typedef int (*smf)(void *, int, int, const void *, const void *, int);
    typedef int (*smb)(void *, int, const void *, const void *, const void *, int);
    typedef int (*mm)(void *, const void *, const void *, const void *, const void *);
    switch (s->kind) {
    case GT_CONV_FWD: st = ((convf)l->conv_fwd)(op, s->prop, s->alg, s->src, s->weights, s->bias, s->dst, s->strides, s->dilates, s->pad_l, s->pad_r); break;
    case GT_CONV_BWD_DATA: st = ((convd)l->conv_bwd_data)(op, s->alg, s->src, s->weights, s->dst, s->strides, s->dilates, s->pad_l, s->pad_r); break;
    case GT_CONV_BWD_WEIGHTS: st = ((convw)l->conv_bwd_weights)(op, s->alg, s->src, s->weights, s->bias, s->dst, s->strides, s->dilates, s->pad_l,
        s->pad_r); break;
    case GT_POOL_FWD: st = ((poolf)l->pool_fwd)(op, s->prop, s->alg, s->src, s->dst, s->strides, s->kernel, s->dilates, s->pad_l, s->pad_r); break;
    case GT_POOL_BWD: st = ((poolb)l->pool_bwd)(op, s->alg, s->src, s->dst, s->strides, s->kernel, s->dilates, s->pad_l, s->pad_r); break;
    case GT_SOFTMAX_FWD: st = ((smf)l->softmax_fwd)(op, s->prop, s->alg, s->src, s->dst, s->axis); break;
    case GT_SOFTMAX_BWD: st = ((smb)l->softmax_bwd)(op, s->alg, s->src, s->weights, s->dst, s->axis); break;
    case GT_MATMUL: st = ((mm)l->matmul)(op, s->src, s->weights, s->bias, s->dst); break;
    }
    if (!st) st = create2(l, op, attr, s->hint, s->skip, pd);
    free(op);
    return st;
}

static int pd3(gt_lib *l, const gt_spec *s, const void *attr, void **pd) {
    typedef int (*convf)(void **, void *, int, int, const void *, const void *, const void *, const void *, dims_t, dims_t, dims_t, dims_t, const void *);
    typedef int (*convd)(void **, void *, int, const void *, const void *, const void *, dims_t, dims_t, dims_t, dims_t, const void *, const void *);
    typedef int (*convw)(void **, void *, int, const void *, const void *, const void *, const void *, dims_t, dims_t, dims_t, dims_t, const void *,
        const void *);
    typedef int (*poolf)(void **, void *, int, int, const void *, const void *, dims_t, dims_t, dims_t, dims_t, dims_t, const void *);
    typedef int (*poolb)(void **, void *, int, const void *, const void *, dims_t, dims_t, dims_t, dims_t, dims_t, const void *, const void *);
    typedef int (*smf)(void **, void *, int, int, const void *, const void *, int, const void *);
    typedef int (*smb)(void **, void *, int, const void *, const void *, const void *, int, const void *, const void *);
    typedef int (*mm)(void **, void *, const void *, const void *, const void *, const void *, const void *);
    void *e = l->engine;
    switch (s->kind) {
    case GT_CONV_FWD: return ((convf)l->conv_fwd)(pd, e, s->prop, s->alg, s->src, s->weights, s->bias, s->dst, s->strides, s->dilates, s->pad_l,
        s->pad_r, attr);
    case GT_CONV_BWD_DATA: return ((convd)l->conv_bwd_data)(pd, e, s->alg, s->src, s->weights, s->dst, s->strides, s->dilates, s->pad_l, s->pad_r,
        s->hint, attr);
    case GT_CONV_BWD_WEIGHTS: return ((convw)l->conv_bwd_weights)(pd, e, s->alg, s->src, s->weights, s->bias, s->dst, s->strides, s->dilates,
        s->pad_l, s->pad_r, s->hint, attr);
    case GT_POOL_FWD: return ((poolf)l->pool_fwd)(pd, e, s->prop, s->alg, s->src, s->dst, s->strides, s->kernel, s->dilates, s->pad_l, s->pad_r, attr);
    case GT_POOL_BWD: return ((poolb)l->pool_bwd)(pd, e, s->alg, s->src, s->dst, s->strides, s->kernel, s->dilates, s->pad_l, s->pad_r, s->hint, attr);
    case GT_SOFTMAX_FWD: return ((smf)l->softmax_fwd)(pd, e, s->prop, s->alg, s->src, s->dst, s->axis, attr);
    case GT_SOFTMAX_BWD: return ((smb)l->softmax_bwd)(pd, e, s->alg, s->src, s->weights, s->dst, s->axis, s->hint, attr);
    case GT_MATMUL: return ((mm)l->matmul)(pd, e, s->src, s->weights, s->bias, s->dst, attr);
    }
    return 5;
}

static void *constructor(gt_lib *l, int kind) {
    switch (kind) {
    case GT_CONV_FWD: return l->conv_fwd;
    case GT_CONV_BWD_DATA: return l->conv_bwd_data;
    case GT_CONV_BWD_WEIGHTS: return l->conv_bwd_weights;
    case GT_POOL_FWD: return l->pool_fwd;
    case GT_POOL_BWD: return l->pool_bwd;
    case GT_SOFTMAX_FWD: return l->softmax_fwd;
    case GT_SOFTMAX_BWD: return l->softmax_bwd;
    case GT_MATMUL: return l->matmul;
    }
    return (void *)l->reorder_pd;
}

int gt_pd(gt_lib *l, const gt_spec *s, void **pd) {
    void *attr = NULL;
    *pd = NULL;
    if (!constructor(l, s->kind)) return -2;
    gt_threads(l, s->threads); // the library divides work by the current number of threads
    int st = attr_new(l, s, &attr);
    if (st) return st;
    if (s->kind == GT_REORDER) st = l->reorder_pd(pd, s->src, l->engine, s->dst, l->engine, attr);
    else if (l->major == 2) st = pd2(l, s, attr, pd);
    else {
        st = pd3(l, s, attr, pd);
        for (int i = 0; !st && i < s->skip; i++)
            if ((st = ((int (*)(void *))l->next_impl)(*pd))) {
                l->pd_destroy(*pd);
                *pd = NULL;
            }
    }
    l->attr_destroy(attr);
    return st;
}

const char *gt_pd_impl(gt_lib *l, const void *pd) {
    const char *s = NULL;
    return l->pd_query(pd, 8 /* impl_info_str */, 0, &s) || !s ? "" : s;
}

void *gt_pd_md(gt_lib *l, const void *pd, int what, int index) { return gt_md_clone(l, l->pd_query_md(pd, what, index)); }

size_t gt_pd_scratch(gt_lib *l, const void *pd) {
    const void *md = l->pd_query_md(pd, 136 /* scratchpad_md */, 0);
    return md ? l->md_size(md) : 0;
}

void gt_pd_free(gt_lib *l, void *pd) { l->pd_destroy(pd); }

int gt_prim(gt_lib *l, const void *pd, int threads, void **prim) {
    gt_threads(l, threads);
    return l->primitive_create(prim, pd);
}

void gt_prim_free(gt_lib *l, void *prim) { l->primitive_destroy(prim); }
