//go:build cgo && linux

#include "lib.h"
#include <stdlib.h>
#include <string.h>

// The part of the 2.x descriptor that is read here (a test of the package checks the offsets).
typedef struct {
    int ndims;
    gt_dims dims;
    int dtype;
    gt_dims padded, padded_offsets;
    int64_t offset0;
    int format_kind;
    struct { gt_dims strides; int nblocks; gt_dims blocks, idxs; } b;
} md2;
enum { BLOCKED = 2 };

typedef int (*strides2)(void *, int, const int64_t *, int, const int64_t *);
typedef int (*strides3)(void **, int, const int64_t *, int, const int64_t *);
typedef int (*tag2)(void *, int, const int64_t *, int, int);
typedef int (*tag3)(void **, int, const int64_t *, int, int);
typedef int (*permute2)(void *, const void *, const int *);
typedef int (*permute3)(void **, const void *, const int *);
typedef int (*clone3)(void **, const void *);
typedef int (*destroy3)(void *);
typedef int (*query3)(const void *, int, void *);

static void *done(void *md, int status, int own, int *out) {
    *out = status;
    if (!status) return md;
    if (own) free(md);
    return NULL;
}

void *gt_md_strides(gt_lib *l, int dtype, int nd, const int64_t *dims, const int64_t *strides, int *status) {
    void *md = NULL;
    if (l->major == 2) {
        md = calloc(1, GT_MD_BYTES);
        return done(md, ((strides2)l->md_strides)(md, nd, dims, dtype, strides), 1, status);
    }
    int s = ((strides3)l->md_strides)(&md, nd, dims, dtype, strides);
    return done(md, s, 0, status);
}

void *gt_md_tag(gt_lib *l, int dtype, int nd, const int64_t *dims, int tag, int *status) {
    void *md = NULL;
    if (l->major == 2) {
        md = calloc(1, GT_MD_BYTES);
        return done(md, ((tag2)l->md_tag)(md, nd, dims, dtype, tag), 1, status);
    }
    int s = ((tag3)l->md_tag)(&md, nd, dims, dtype, tag);
    return done(md, s, 0, status);
}

void *gt_md_clone(gt_lib *l, const void *src) {
    void *md = NULL;
    if (!src) return NULL;
    if (l->major == 2) {
        md = calloc(1, GT_MD_BYTES);
        memcpy(md, src, 696); // sizeof(dnnl_memory_desc_t); reading more would leave the library's object
        return md;
    }
    return ((clone3)l->md_clone)(&md, src) ? NULL : md;
}

void *gt_md_permute(gt_lib *l, const void *src, const int *perm, int *status) {
    void *md = NULL;
    if (l->major == 2) {
        md = calloc(1, GT_MD_BYTES);
        return done(md, ((permute2)l->md_permute)(md, src, perm), 1, status);
    }
    int s = ((permute3)l->md_permute)(&md, src, perm);
    return done(md, s, 0, status);
}

void gt_md_free(gt_lib *l, void *md) {
    if (!md) return;
    if (l->major == 2) free(md);
    else ((destroy3)l->md_destroy)(md);
}

int gt_md_get(gt_lib *l, const void *src, gt_md_info *o) {
    memset(o, 0, sizeof *o);
    if (l->major == 2) {
        const md2 *m = src;
        o->ndims = m->ndims, o->dtype = m->dtype, o->blocked = m->format_kind == BLOCKED, o->nblocks = m->b.nblocks;
        memcpy(o->dims, m->dims, sizeof(gt_dims));
        memcpy(o->padded, m->padded, sizeof(gt_dims));
        memcpy(o->strides, m->b.strides, sizeof(gt_dims));
        memcpy(o->blocks, m->b.blocks, sizeof(gt_dims));
        memcpy(o->idxs, m->b.idxs, sizeof(gt_dims));
        return 0;
    }
    enum { NDIMS = 256, DIMS, DTYPE, OFFSET, PADDED, PADDED_OFF, KIND, NBLKS, BLKS, IDXS, STRIDES = 14 };
    query3 q = (query3)l->md_query;
    int kind = 0, s = q(src, NDIMS, &o->ndims) | q(src, DTYPE, &o->dtype) | q(src, KIND, &kind);
    o->blocked = kind == BLOCKED;
    struct { int what; int64_t *to; } t[] = {{DIMS, o->dims}, {PADDED, o->padded}, {STRIDES, o->strides}, {BLKS, o->blocks}, {IDXS, o->idxs}};
    if (o->blocked) s |= q(src, NBLKS, &o->nblocks);
    for (int i = 0; i < 5; i++) {
        int64_t *p = NULL;
        if (i >= 2 && !o->blocked) break;
        int n = i < 3 ? o->ndims : o->nblocks;
        if (!n) continue;
        s |= q(src, t[i].what, &p);
        if (s || !p) return s ? s : 5;
        memcpy(t[i].to, p, n * sizeof(int64_t));
    }
    return s;
}

int gt_md_equal(gt_lib *l, const void *a, const void *b) { return l->md_equal(a, b); }
size_t gt_md_size(gt_lib *l, const void *md) { return l->md_size(md); }
